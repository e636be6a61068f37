@bus
Feature: Bridged instances
  A bridged instance keeps all rules and stores through a main instance. The main is the single point from which events go
  out: a mutation made anywhere reaches every instance's subscribers exactly once.

  Background:
    Given a session "chat" with {"metadata": {"owner": "u_1"}}
    And a bridged instance "left"
    And a bridged instance "right"

  Scenario Outline: A message appended on <where> reaches every instance once
    Given "on-main" is bound to "session::message-added" on "main"
    And "on-left" is bound to "session::message-added" on "left"
    And "on-right" is bound to "session::message-added" on "right"
    When I call "session::append" on "<where>" with {"session_id": "chat", "entry_id": "e1", "message": {"role": "user", "content": [], "timestamp": 1}}
    Then "on-main" hears {"session_id": "chat", "entry_id": "e1"}
    And "on-left" hears {"session_id": "chat", "entry_id": "e1"}
    And "on-right" hears {"session_id": "chat", "entry_id": "e1"}
    And "on-main" hears nothing more
    And "on-left" hears nothing more
    And "on-right" hears nothing more

    Examples:
      | where |
      | main  |
      | left  |
      | right |

  Scenario: Every instance applies the filters of its own subscribers
    Given "users" is bound to "session::message-added" on "left" with {"roles": ["user"]}
    And "robots" is bound to "session::message-added" on "right" with {"roles": ["assistant"]}
    And "others" is bound to "session::message-added" on "right" with {"metadata": {"owner": "u_2"}}
    When a "user" says "Hi" as "e1" in "chat"
    And a "assistant" says "Hello" as "e2" in "chat"
    Then "users" hears {"entry_id": "e1"}
    And "robots" hears {"entry_id": "e2"}
    And "users" hears nothing more
    And "robots" hears nothing more
    And "others" hears nothing more

  Scenario: What one instance writes the others read
    When I call "session::append" on "left" with {"session_id": "chat", "entry_id": "e1", "message": {"role": "user", "content": [], "timestamp": 1}}
    And I call "session::messages" on "right" with {"session_id": "chat"}
    Then the answer lists the messages "e1"
    And the transcript of "chat" is "e1"

  Scenario: An append is idempotent across instances
    When I call "session::append" on "left" with {"session_id": "chat", "entry_id": "e1", "message": {"role": "user", "content": [], "timestamp": 1}}
    And I call "session::append" on "right" with {"session_id": "chat", "entry_id": "e1", "message": {"role": "user", "content": [], "timestamp": 1}}
    Then the transcript of "chat" is "e1"

  Scenario: A bridged instance does not serve the store protocol
    When I call "session::store::list-metas" on "left" with {}
    Then the call is refused
