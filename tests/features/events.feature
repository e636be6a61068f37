Feature: Events
  Six trigger types cover every mutation. A handler is bound to a type with a filter; it gets what the filter lets through.

  Scenario: Each mutation fires its trigger type
    Given "created" is bound to "session::created"
    And "added" is bound to "session::message-added"
    And "updated" is bound to "session::message-updated"
    And "status" is bound to "session::status-changed"
    And "meta" is bound to "session::meta-updated"
    And "deleted" is bound to "session::deleted"
    When I call "session::ensure" with {"session_id": "chat"}
    And a "user" says "Hi" as "e1" in "chat"
    And the message "e1" of "chat" becomes "Hello"
    And I call "session::set-status" with {"session_id": "chat", "status": "working"}
    And I call "session::set-meta" with {"session_id": "chat", "description": "d"}
    And I call "session::delete" with {"session_id": "chat"}
    Then "created" hears {"session_id": "chat"}
    And "added" hears {"session_id": "chat", "entry_id": "e1"}
    And "updated" hears {"session_id": "chat", "entry_id": "e1", "revision": 1}
    And "status" hears {"session_id": "chat", "status": "working", "previous_status": "idle"}
    And "meta" hears {"session_id": "chat", "description": "d"}
    And "deleted" hears {"session_id": "chat"}
    And "created" hears nothing more
    And "added" hears nothing more
    And "updated" hears nothing more
    And "status" hears nothing more
    And "meta" hears nothing more

  Scenario: A handler gets the messages of one session
    Given a session "mine"
    And a session "theirs"
    And "ui" is bound to "session::message-added" with {"session_id": "mine"}
    When a "user" says "Hi" as "t1" in "theirs"
    And a "user" says "Hi" as "m1" in "mine"
    Then "ui" hears {"session_id": "mine", "entry_id": "m1"}
    And "ui" hears nothing more

  Scenario: A handler gets the messages of some roles, and no custom entries
    Given a session "chat"
    And "ui" is bound to "session::message-added" with {"roles": ["assistant", "function_result"]}
    When a "user" says "add" as "e1" in "chat"
    And I call "session::append" with {"session_id": "chat", "entry_id": "c1", "custom": {"custom_type": "note"}}
    And a "function_result" says "3" as "e2" in "chat"
    And a "custom" says "3" as "e3" in "chat"
    And a "assistant" says "It is 3" as "e4" in "chat"
    Then "ui" hears {"entry_id": "e2"}
    And "ui" hears {"entry_id": "e4"}
    And "ui" hears nothing more

  Scenario Outline: Metadata filter the events of <trigger>
    Given "ui" is bound to "<trigger>" with {"metadata": {"owner": "u_1"}}
    And a session "theirs" with {"metadata": {"owner": "u_2"}}
    And a session "plain"
    And a session "mine" with {"metadata": {"owner": "u_1", "project": "p"}}
    When a "user" says "Hi" as "t1" in "theirs"
    And the message "t1" of "theirs" becomes "Hello"
    And a "user" says "Hi" as "m1" in "mine"
    And the message "m1" of "mine" becomes "Hello"
    And I call "session::set-status" with {"session_id": "plain", "status": "working"}
    And I call "session::set-status" with {"session_id": "mine", "status": "working"}
    And I call "session::set-meta" with {"session_id": "theirs", "title": "t"}
    And I call "session::set-meta" with {"session_id": "mine", "title": "t"}
    And I call "session::delete" with {"session_id": "plain"}
    And I call "session::delete" with {"session_id": "mine"}
    Then "ui" hears {"session_id": "mine"}
    And "ui" hears nothing more

    Examples:
      | trigger                  |
      | session::created         |
      | session::message-added   |
      | session::message-updated |
      | session::status-changed  |
      | session::meta-updated    |
      | session::deleted         |

  Scenario: Metadata are compared as they are after the change
    Given a session "chat" with {"metadata": {"owner": "u_1"}}
    And "old" is bound to "session::meta-updated" with {"metadata": {"owner": "u_1"}}
    And "new" is bound to "session::meta-updated" with {"metadata": {"owner": "u_2"}}
    When I call "session::set-meta" with {"session_id": "chat", "metadata": {"owner": "u_2"}}
    Then "new" hears {"session_id": "chat", "metadata": {"owner": "u_2"}}
    And "old" hears nothing more

  Scenario: All filters must hold
    Given a session "chat" with {"metadata": {"owner": "u_1"}}
    And "ui" is bound to "session::message-added" with {"session_id": "chat", "roles": ["user"], "metadata": {"owner": "u_1"}}
    When a "assistant" says "no" as "e1" in "chat"
    And a "user" says "yes" as "e2" in "chat"
    Then "ui" hears {"entry_id": "e2"}
    And "ui" hears nothing more

  Scenario Outline: A malformed configuration of <trigger> is rejected at registration
    When "ui" asks to be bound to "<trigger>" with <config>
    Then it is refused with "trigger_registration_failed"

    Examples:
      | trigger                  | config                  |
      | session::created         | {"session_id": "chat"}  |
      | session::message-added   | {"sesion_id": "chat"}   |
      | session::message-added   | {"roles": ["robot"]}    |
      | session::message-updated | {"roles": "user"}       |
      | session::status-changed  | {"roles": ["user"]}     |
      | session::meta-updated    | {"metadata": "u_1"}     |
      | session::deleted         | {"session_id": 7}       |

  Scenario: Every binding gets its own delivery
    Given a session "chat"
    And "one" is bound to "session::message-added"
    And "two" is bound to "session::message-added"
    When a "user" says "Hi" as "e1" in "chat"
    Then "one" hears {"entry_id": "e1"}
    And "two" hears {"entry_id": "e1"}
    And "one" hears nothing more
    And "two" hears nothing more

  @bus
  Scenario: A mutation does not wait for a handler
    Given a session "chat"
    And "slow" is bound to "session::message-added"
    When a "user" says "Hi" as "e1" in "chat"
    And a "user" says "Still there?" as "e2" in "chat"
    Then the transcript of "chat" is "e1, e2"
    And "slow" hears {"entry_id": "e1"}
    And "slow" hears {"entry_id": "e2"}

  @bus
  Scenario: A handler that was away gets what happened meanwhile
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When the client connects again
    And a "user" says "Hi" as "e1" in "chat"
    And "ui" is bound to "session::message-added"
    Then "ui" hears {"entry_id": "e1"}
    And "ui" hears nothing more

  @bus
  Scenario: A handler that unbinds starts at the present when it comes back
    Given a session "chat"
    And "ui" is bound to "session::message-added"
    When "ui" unbinds
    And a "user" says "Hi" as "e1" in "chat"
    And "ui" is bound to "session::message-added"
    And a "user" says "Hello" as "e2" in "chat"
    Then "ui" hears {"entry_id": "e2"}
    And "ui" hears nothing more
