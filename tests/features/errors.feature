Feature: Errors
  A call that cannot be done is refused with a code that stays the same, and nothing is written.

  Background:
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | Hi   |
      | c1    | -    | note |

  Scenario Outline: <code> of <function>
    When I call "<function>" with <request>
    Then the call is refused with "<code>"
    And the transcript of "chat" reads "Hi"

    Examples: a session that does not exist
      | function                 | request                                                      | code              |
      | session::set-meta        | {"session_id": "nobody", "title": "t"}                       | session/not_found |
      | session::set-status      | {"session_id": "nobody", "status": "done"}                   | session/not_found |
      | session::append          | {"session_id": "nobody", "custom": {"custom_type": "x"}}     | session/not_found |
      | session::append-many     | {"session_id": "nobody", "messages": []}                     | session/not_found |
      | session::update-message  | {"session_id": "nobody", "entry_id": "e1", "content": []}    | session/not_found |
      | session::messages        | {"session_id": "nobody"}                                     | session/not_found |
      | session::fork            | {"session_id": "nobody", "entry_id": "e1"}                   | session/not_found |
      | session::set-active-leaf | {"session_id": "nobody", "entry_id": "e1"}                   | session/not_found |

    Examples: an entry that does not exist
      | function                 | request                                                    | code                    |
      | session::update-message  | {"session_id": "chat", "entry_id": "none", "content": []}  | session/entry_not_found |
      | session::messages        | {"session_id": "chat", "from_entry_id": "none"}            | session/entry_not_found |
      | session::fork            | {"session_id": "chat", "entry_id": "none"}                 | session/entry_not_found |
      | session::set-active-leaf | {"session_id": "chat", "entry_id": "none"}                 | session/entry_not_found |

    Examples: a parent that does not exist
      | function             | request                                                                                                          | code                     |
      | session::append      | {"session_id": "chat", "parent_id": "none", "custom": {"custom_type": "x"}}                                      | session/parent_not_found |
      | session::append-many | {"session_id": "chat", "parent_id": "none", "messages": [{"role": "user", "content": [], "timestamp": 1}]}       | session/parent_not_found |

    Examples: a request that makes no sense
      | function                | request                                                                                                                  | code                       |
      | session::append         | {"session_id": "chat"}                                                                                                   | session/invalid_request    |
      | session::append         | {"session_id": "chat", "custom": {"custom_type": "x"}, "message": {"role": "user", "content": [], "timestamp": 1}}       | session/invalid_request    |
      | session::append-many    | {"session_id": "chat", "messages": []}                                                                                   | session/empty_batch        |
      | session::update-message | {"session_id": "chat", "entry_id": "c1", "content": []}                                                                  | session/invalid_entry_kind |
      | session::ensure         | {"session_id": ""}                                                                                                       | session/invalid_request    |
      | session::list           | {"cursor": "nonsense"}                                                                                                   | session/invalid_cursor     |
      | session::messages       | {"session_id": "chat", "cursor": "nonsense"}                                                                             | session/invalid_cursor     |
