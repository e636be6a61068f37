Feature: Reading a transcript
  The active path is read as messages with entry ids, oldest first.

  Background:
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role            | text    |
      | e1    | user            | add 1 2 |
      | e2    | assistant       | calling |
      | c1    | -               | note    |
      | e3    | function_result | 3       |
      | e4    | assistant       | 3       |

  Scenario: Messages with their entry ids, oldest first
    When I call "session::messages" with {"session_id": "chat"}
    Then the answer lists the messages "e1, e2, e3, e4"
    And the answer has no "/next_cursor"

  Scenario: Custom entries are interleaved at their position when they are asked for
    When I call "session::messages" with {"session_id": "chat", "include_custom": true}
    Then the answer lists the messages "e1, e2, c1, e3, e4"

  Scenario Outline: Only messages of the roles <roles>
    When I call "session::messages" with {"session_id": "chat", "roles": <roles>, "include_custom": true}
    Then the answer lists the messages "<messages>"

    Examples:
      | roles                   | messages   |
      | ["user"]                | e1         |
      | ["assistant"]           | e2, e4     |
      | ["user", "assistant"]   | e1, e2, e4 |

  Scenario: Pages follow each other until none remain
    When I call "session::messages" with {"session_id": "chat", "limit": 3}
    Then the answer lists the messages "e1, e2, e3"
    And its "/next_cursor" is called $next
    When I call "session::messages" with {"session_id": "chat", "limit": 3, "cursor": "$next"}
    Then the answer lists the messages "e4"
    And the answer has no "/next_cursor"

  Scenario: The path that ends at an entry
    When I call "session::messages" with {"session_id": "chat", "from_entry_id": "e2"}
    Then the answer lists the messages "e1, e2"

  Scenario: One entry
    When I call "session::get-message" with {"session_id": "chat", "entry_id": "c1"}
    Then the answer has {"entry": {"kind": "custom", "id": "c1", "parent_id": "e2", "custom_type": "note", "data": "note"}}

  Scenario Outline: An unknown entry is null
    When I call "session::get-message" with {"session_id": "<session>", "entry_id": "nothing"}
    Then the answer is null

    Examples:
      | session |
      | chat    |
      | nobody  |
