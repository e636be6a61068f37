Feature: The fs adapter
  One append-only JSONL file per session, with typed meta, entry and leaf records that are replayed last-wins on startup.

  Scenario: The records of a session, beside those that Bough adds for itself
    Given a session "chat" with {"title": "Weather"}
    When a "user" says "Hi" as "e1" in "chat"
    And a "assistant" says "Hello" as "e2" in "chat"
    And I call "session::set-active-leaf" with {"session_id": "chat", "entry_id": "e1"}
    Then the file "chat.jsonl" has the records
      """
      {"type": "meta", "meta": {"session_id": "chat", "title": "Weather", "message_count": 0}}
      {"type": "entry", "entry": {"kind": "message", "id": "e1", "parent_id": null, "revision": 0}}
      {"type": "leaf", "entry_id": "e1"}
      {"type": "meta", "meta": {"session_id": "chat", "message_count": 1}}
      {"type": "entry", "entry": {"kind": "message", "id": "e2", "parent_id": "e1", "revision": 0}}
      {"type": "leaf", "entry_id": "e2"}
      {"type": "meta", "meta": {"session_id": "chat", "message_count": 2}}
      {"type": "leaf", "entry_id": "e1"}
      """

  Scenario: An id becomes a file name in which other characters are escaped
    Given a session "../chat 42"
    Then there is a file "..%2Fchat%2042.jsonl"

  Scenario: The file is removed with its session
    Given a session "chat"
    Then there is a file "chat.jsonl"
    When I call "session::delete" with {"session_id": "chat"}
    Then there is no file "chat.jsonl"

  Scenario: A restart finds everything as it was
    Given a session "chat" with {"title": "Weather", "metadata": {"owner": "u_1"}}
    And the session "chat" has the entries
      | entry | role      | text     |
      | e1    | user      | question |
      | e2    | assistant | answer   |
      | c1    | -         | note     |
    And I call "session::set-status" with {"session_id": "chat", "status": "error", "reason": "no quota"}
    And I call "session::get" with {"session_id": "chat"}
    When it is restarted
    And I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"title": "Weather", "metadata": {"owner": "u_1"}, "status": "error", "status_reason": "no quota", "message_count": 2}}
    When I call "session::messages" with {"session_id": "chat", "include_custom": true}
    Then the answer lists the messages "e1, e2, c1"

  Scenario: The last record of an entry wins
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | one  |
    And the message "e1" of "chat" becomes "two"
    And the message "e1" of "chat" becomes "three"
    When it is restarted
    And I call "session::get-message" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer has {"entry": {"revision": 2, "message": {"content": [{"type": "text", "text": "three"}]}}}

  Scenario: The last active leaf wins
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role      | text     |
      | e1    | user      | question |
      | e2    | assistant | answer   |
    And I call "session::set-active-leaf" with {"session_id": "chat", "entry_id": "e1"}
    When it is restarted
    Then the transcript of "chat" is "e1"
    When a "assistant" says "another" as "e3" in "chat"
    Then the answer has {"parent_id": "e1"}

  Scenario: An append that is repeated after a restart is still a no-op
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | Hi   |
    When it is restarted
    And a "user" says "Hi" as "e1" in "chat"
    Then the transcript of "chat" is "e1"
    When I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"message_count": 1}}

  Scenario: A deleted session stays deleted
    Given a session "chat"
    And I call "session::delete" with {"session_id": "chat"}
    When it is restarted
    And I call "session::get" with {"session_id": "chat"}
    Then the answer is null
