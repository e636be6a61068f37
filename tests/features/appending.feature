Feature: Appending entries
  An entry hangs below the active leaf, or below the parent that is given. Appending always moves the active leaf to the
  new entry.

  Scenario Outline: A message of the role <role>
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When a "<role>" says "Hello" as "e1" in "chat"
    Then the answer has {"entry_id": "e1", "parent_id": null}
    And "ui" hears {"session_id": "chat", "entry_id": "e1", "parent_id": null, "message": {"role": "<role>", "content": [{"type": "text", "text": "Hello"}]}}
    And "ui" hears nothing more
    When I call "session::get-message" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer has {"entry": {"kind": "message", "id": "e1", "parent_id": null, "revision": 0, "message": {"role": "<role>"}}}

    Examples:
      | role            |
      | user            |
      | assistant       |
      | function_result |
      | custom          |

  Scenario: Entries are chained to the active leaf
    Given a session "chat"
    When a "user" says "one" as "e1" in "chat"
    And a "assistant" says "two" as "e2" in "chat"
    Then the answer has {"entry_id": "e2", "parent_id": "e1"}
    And the transcript of "chat" is "e1, e2"
    When I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"message_count": 2}}

  Scenario: A given parent overrides the active leaf, and the leaf moves to the new entry
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role      | text |
      | e1    | user      | Hi   |
      | e2    | assistant | Yes? |
    When I call "session::append" with
      """
      {"session_id": "chat", "entry_id": "e3", "parent_id": "e1",
       "message": {"role": "user", "content": [], "timestamp": 1}}
      """
    Then the answer has {"entry_id": "e3", "parent_id": "e1"}
    And the transcript of "chat" is "e1, e3"
    When a "assistant" says "next" as "e4" in "chat"
    Then the answer has {"parent_id": "e3"}

  Scenario: Appending an id that already exists is a no-op
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role      | text  |
      | e1    | user      | first |
      | e2    | assistant | reply |
    And "ui" is bound to "session::message-added"
    When a "user" says "second" as "e1" in "chat"
    Then the answer has {"entry_id": "e1", "parent_id": null}
    And "ui" hears nothing more
    And the transcript of "chat" reads "first, reply"

  Scenario: An id is made for an entry that has none
    Given a session "chat"
    When I call "session::append" with {"session_id": "chat", "message": {"role": "user", "content": [], "timestamp": 1}}
    Then its "/entry_id" is called $entry
    And the transcript of "chat" is "$entry"

  Scenario: Custom entries are bookkeeping
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When I call "session::append" with {"session_id": "chat", "entry_id": "c1", "custom": {"custom_type": "compaction", "data": {"kept": 3}}}
    Then "ui" hears {"entry_id": "c1", "custom": {"custom_type": "compaction", "data": {"kept": 3}}}
    When I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"message_count": 0}}
    And the transcript of "chat" is ""

  Scenario: The origin is echoed on the event
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When I call "session::append" with
      """
      {"session_id": "chat", "entry_id": "e1", "origin": {"turn_id": "t-1"},
       "message": {"role": "user", "content": [], "timestamp": 1}}
      """
    Then "ui" hears {"entry_id": "e1", "origin": {"turn_id": "t-1"}}

  Scenario: Several messages are chained in order, with an event for each
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | Hi   |
    And "ui" is bound to "session::message-added"
    When I call "session::append-many" with
      """
      {"session_id": "chat", "origin": {"turn_id": "t-1"}, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "one"}], "timestamp": 1},
        {"role": "user", "content": [{"type": "text", "text": "two"}], "timestamp": 2}]}
      """
    Then its "/entry_ids/0" is called $one
    And its "/last_entry_id" is called $two
    And the answer is {"entry_ids": ["$one", "$two"], "last_entry_id": "$two"}
    And "ui" hears {"entry_id": "$one", "parent_id": "e1", "origin": {"turn_id": "t-1"}}
    And "ui" hears {"entry_id": "$two", "parent_id": "$one", "origin": {"turn_id": "t-1"}}
    And the transcript of "chat" reads "Hi, one, two"

  Scenario: Several messages below a given parent
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role      | text |
      | e1    | user      | Hi   |
      | e2    | assistant | Yes? |
    When I call "session::append-many" with
      """
      {"session_id": "chat", "parent_id": "e1", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "other"}], "timestamp": 1}]}
      """
    Then the transcript of "chat" reads "Hi, other"
