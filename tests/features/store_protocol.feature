@bus
Feature: The store protocol
  Bridged instances store through these functions of their main.

  Scenario: Metadata are written, read, listed and deleted
    When I call "session::store::put-meta" with
      """
      {"meta": {"session_id": "chat", "title": "Weather", "description": "", "status": "idle",
                "created_at": 1, "updated_at": 2, "message_count": 0}}
      """
    Then the answer is {"ok": true}
    When I call "session::store::get-meta" with {"session_id": "chat"}
    Then the answer has {"session_id": "chat", "title": "Weather", "created_at": 1}
    When I call "session::store::list-metas" with {}
    Then the answer lists 1 metas
    When I call "session::store::delete-meta" with {"session_id": "chat"}
    Then the answer is {"ok": true}
    When I call "session::store::get-meta" with {"session_id": "chat"}
    Then the answer is null

  Scenario: Entries are written, read, listed and deleted
    Given a session "chat"
    When I call "session::store::put-entry" with
      """
      {"session_id": "chat", "entry": {"kind": "message", "id": "e1", "parent_id": null, "timestamp": 1,
        "revision": 0, "message": {"role": "user", "content": [], "timestamp": 1}}}
      """
    Then the answer is {"ok": true}
    When I call "session::store::get-entry" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer has {"id": "e1", "kind": "message"}
    When I call "session::store::list-entries" with {"session_id": "chat"}
    Then the answer lists 1 entries
    When I call "session::store::delete-entries" with {"session_id": "chat"}
    Then the answer is {"ok": true}
    When I call "session::store::get-entry" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer is null

  Scenario: The active leaf is moved, read and cleared
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role      | text |
      | e1    | user      | one  |
      | e2    | assistant | two  |
    When I call "session::store::set-active-leaf" with {"session_id": "chat", "entry_id": "e1"}
    And I call "session::store::get-active-leaf" with {"session_id": "chat"}
    Then the answer is {"entry_id": "e1"}
    When I call "session::store::delete-active-leaf" with {"session_id": "chat"}
    And I call "session::store::get-active-leaf" with {"session_id": "chat"}
    Then the answer is {"entry_id": null}

  Scenario: An entry that is written and then published is heard once
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When I call "session::store::put-entry" with
      """
      {"session_id": "chat", "entry": {"kind": "message", "id": "e1", "parent_id": null, "timestamp": 1,
        "revision": 0, "message": {"role": "user", "content": [], "timestamp": 1}}}
      """
    And I call "session::store::publish-events" with
      """
      {"events": [{"trigger_type": "session::message-added", "payload": {"session_id": "chat", "entry_id": "e1",
        "parent_id": null, "timestamp": 1, "message": {"role": "user", "content": [], "timestamp": 1}}}]}
      """
    Then the answer is {"published": 1}
    And "ui" hears {"session_id": "chat", "entry_id": "e1"}
    And "ui" hears nothing more

  Scenario: Envelopes that are not well-formed are not counted
    When I call "session::store::publish-events" with {"events": [{"trigger_type": "session::nonsense", "payload": {}}]}
    Then the answer is {"published": 0}
