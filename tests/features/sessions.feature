Feature: Sessions
  A session is an append-only log of typed entries plus a small metadata record: title, description, coarse status and
  metadata that the app defines.

  Scenario: A session is created at status idle
    Given "ui" is bound to "session::created"
    When I call "session::create" with {}
    Then the answer has {"meta": {"title": "", "description": "", "status": "idle", "message_count": 0}}
    And its "/session_id" is called $chat
    And "ui" hears {"session_id": "$chat", "title": "", "description": "", "status": "idle"}
    And "ui" hears nothing more

  Scenario: What is given at creation is kept
    When I call "session::create" with {"title": "Weather", "description": "a question", "metadata": {"owner": "u_1"}}
    Then its "/session_id" is called $chat
    When I call "session::get" with {"session_id": "$chat"}
    Then the answer has {"meta": {"title": "Weather", "description": "a question", "metadata": {"owner": "u_1"}}}

  Scenario: A session with a chosen id is created once
    Given "ui" is bound to "session::created"
    When I call "session::ensure" with {"session_id": "chat", "title": "first"}
    Then the answer has {"session_id": "chat", "created": true, "meta": {"title": "first"}}
    When I call "session::ensure" with {"session_id": "chat", "title": "second", "metadata": {"owner": "u_2"}}
    Then the answer has {"session_id": "chat", "created": false, "meta": {"title": "first"}}
    And the answer has no "/meta/metadata"
    And "ui" hears {"session_id": "chat", "title": "first"}
    And "ui" hears nothing more

  Scenario: An unknown session is null
    When I call "session::get" with {"session_id": "nobody"}
    Then the answer is null

  Scenario: Fields that are omitted keep their value
    Given a session "chat" with {"title": "t", "description": "d", "metadata": {"owner": "u_1"}}
    And "ui" is bound to "session::meta-updated"
    When I call "session::set-meta" with {"session_id": "chat", "title": "new"}
    Then the answer has {"meta": {"title": "new", "description": "d", "metadata": {"owner": "u_1"}}}
    And "ui" hears {"session_id": "chat", "title": "new", "description": "d", "metadata": {"owner": "u_1"}}
    And "ui" hears nothing more

  Scenario: New metadata replace the stored ones wholesale
    Given a session "chat" with {"metadata": {"owner": "u_1", "project": "p"}}
    When I call "session::set-meta" with {"session_id": "chat", "metadata": {"team": "t"}}
    Then the answer has {"meta": {"metadata": {"team": "t"}}}
    And the answer has no "/meta/metadata/owner"

  Scenario Outline: A status changes to <status>
    Given a session "chat"
    And I call "session::set-status" with {"session_id": "chat", "status": "<before>"}
    And "ui" is bound to "session::status-changed"
    When I call "session::set-status" with {"session_id": "chat", "status": "<status>"}
    Then the answer is {"status": "<status>", "previous_status": "<before>"}
    And "ui" hears {"session_id": "chat", "status": "<status>", "previous_status": "<before>"}
    And "ui" hears nothing more

    Examples:
      | before  | status  |
      | idle    | working |
      | working | done    |
      | done    | error   |
      | error   | idle    |

  Scenario: The same status again changes nothing
    Given a session "chat"
    And I call "session::set-status" with {"session_id": "chat", "status": "working"}
    And "ui" is bound to "session::status-changed"
    When I call "session::set-status" with {"session_id": "chat", "status": "working"}
    Then the answer is {"status": "working", "previous_status": "working"}
    And "ui" hears nothing more

  Scenario: A reason is kept on error and cleared on any other status
    Given a session "chat"
    And "ui" is bound to "session::status-changed"
    When I call "session::set-status" with {"session_id": "chat", "status": "error", "reason": "no quota"}
    And I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"status": "error", "status_reason": "no quota"}}
    And "ui" hears {"status": "error", "status_reason": "no quota"}
    When I call "session::set-status" with {"session_id": "chat", "status": "done", "reason": "not kept"}
    And I call "session::get" with {"session_id": "chat"}
    Then the answer has {"meta": {"status": "done"}}
    And the answer has no "/meta/status_reason"

  Scenario: A deleted session is gone with its entries
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | Hi   |
    And "ui" is bound to "session::deleted"
    When I call "session::delete" with {"session_id": "chat"}
    Then the answer is {"deleted": true}
    And "ui" hears {"session_id": "chat"}
    When I call "session::get" with {"session_id": "chat"}
    Then the answer is null
    When I call "session::get-message" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer is null

  Scenario: An unknown session cannot be deleted
    Given "ui" is bound to "session::deleted"
    When I call "session::delete" with {"session_id": "nobody"}
    Then the answer is {"deleted": false}
    And "ui" hears nothing more

  Scenario: An id that was deleted can be used again
    Given a session "chat"
    And the session "chat" has the entries
      | entry | role | text |
      | e1    | user | Hi   |
    When I call "session::delete" with {"session_id": "chat"}
    And I call "session::ensure" with {"session_id": "chat"}
    Then the answer has {"created": true, "meta": {"message_count": 0}}
    And the transcript of "chat" is ""
