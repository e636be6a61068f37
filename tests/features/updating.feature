Feature: Updating messages
  The content of a message is replaced as a whole. Each update increments the revision, which starts at 0.

  Scenario: An update replaces the content and increments the revision
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text  |
      | e1    | user | draft |
    And "ui" is bound to "session::message-updated"
    When I call "session::update-message" with
      """
      {"session_id": "chat", "entry_id": "e1", "content": [{"type": "text", "text": "final"}],
       "origin": {"turn_id": "t-1"}}
      """
    Then the answer is {"updated": true, "revision": 1}
    And "ui" hears {"entry_id": "e1", "revision": 1, "origin": {"turn_id": "t-1"}, "message": {"role": "user", "content": [{"type": "text", "text": "final"}]}}
    And "ui" hears nothing more
    When I call "session::get-message" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer has {"entry": {"revision": 1, "message": {"content": [{"type": "text", "text": "final"}]}}}

  Scenario: An assistant reply streams
    Given a session "chat"
    And "ui" is bound to "session::message-updated" with {"session_id": "chat", "roles": ["assistant"]}
    When a "assistant" says "" as "e1" in "chat"
    And the message "e1" of "chat" becomes "It"
    And the message "e1" of "chat" becomes "It rains"
    And the message "e1" of "chat" becomes "It rains."
    Then "ui" hears {"entry_id": "e1", "revision": 1, "message": {"content": [{"type": "text", "text": "It"}]}}
    And "ui" hears {"entry_id": "e1", "revision": 2, "message": {"content": [{"type": "text", "text": "It rains"}]}}
    And "ui" hears {"entry_id": "e1", "revision": 3, "message": {"content": [{"type": "text", "text": "It rains."}]}}
    And the transcript of "chat" reads "It rains."
    And "ui" hears nothing more

  Scenario: An expected revision that matches
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | one  |
    When I call "session::update-message" with {"session_id": "chat", "entry_id": "e1", "content": [], "expected_revision": 0}
    Then the answer is {"updated": true, "revision": 1}

  Scenario: An expected revision that does not match writes nothing
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | one  |
    And the message "e1" of "chat" becomes "two"
    And "ui" is bound to "session::message-updated"
    When I call "session::update-message" with {"session_id": "chat", "entry_id": "e1", "content": [], "expected_revision": 0}
    Then the answer is {"updated": false, "revision": 1}
    And the transcript of "chat" reads "two"
    And "ui" hears nothing more

  Scenario Outline: New details of a message of the role <role>
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role   | text |
      | e1    | <role> | one  |
    When I call "session::update-message" with {"session_id": "chat", "entry_id": "e1", "content": [], "details": {"exit": 0}}
    Then the answer is {"updated": true, "revision": 1}
    When I call "session::get-message" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer has {"entry": {"message": {"details": {"exit": 0}}}}

    Examples:
      | role            |
      | function_result |
      | custom          |

  Scenario Outline: A message of the role <role> has no details
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role   | text |
      | e1    | <role> | one  |
    When I call "session::update-message" with {"session_id": "chat", "entry_id": "e1", "content": [], "details": {"exit": 0}}
    Then the call is refused with "session/details_not_supported"
    And the transcript of "chat" reads "one"

    Examples:
      | role      |
      | user      |
      | assistant |
