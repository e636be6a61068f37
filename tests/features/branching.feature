Feature: Branches and forks
  The entries of a session are a tree. The active path ends at the active leaf; a fork copies a path into a session of its
  own.

  Background:
    Given a session "chat" with {"title": "Weather", "metadata": {"owner": "u_1"}}
    And the session "chat" has the entries
      | entry | role      | text     |
      | e1    | user      | question |
      | c1    | -         | note     |
      | e2    | assistant | answer   |
      | e3    | user      | more     |

  Scenario: The active path is moved and the next entry chains from there
    When I call "session::set-active-leaf" with {"session_id": "chat", "entry_id": "e1"}
    Then the answer is {"active_leaf": "e1"}
    And the transcript of "chat" is "e1"
    When a "assistant" says "another answer" as "e4" in "chat"
    Then the answer has {"parent_id": "e1"}
    And the transcript of "chat" is "e1, e4"

  Scenario: The branch that was left is still there
    When I call "session::set-active-leaf" with {"session_id": "chat", "entry_id": "e1"}
    And a "assistant" says "another answer" as "e4" in "chat"
    And I call "session::messages" with {"session_id": "chat", "from_entry_id": "e3"}
    Then the answer lists the messages "e1, e2, e3"
    When I call "session::set-active-leaf" with {"session_id": "chat", "entry_id": "e3"}
    Then the transcript of "chat" is "e1, e2, e3"

  Scenario: A fork copies the path up to an entry under fresh ids
    When I call "session::fork" with {"session_id": "chat", "entry_id": "e2"}
    Then its "/session_id" is called $copy
    And the answer has {"meta": {"title": "Weather", "forked_from": "chat", "status": "idle", "message_count": 2, "metadata": {"owner": "u_1"}}}
    And the transcript of "$copy" reads "question, answer"
    When I call "session::get-message" with {"session_id": "$copy", "entry_id": "e1"}
    Then the answer is null
    When I call "session::messages" with {"session_id": "$copy", "include_custom": true}
    Then the answer lists 3 messages

  Scenario: The copied path is the active path of the new session
    When I call "session::fork" with {"session_id": "chat", "entry_id": "e2"}
    Then its "/session_id" is called $copy
    When a "user" says "differently" as "f1" in "$copy"
    Then the transcript of "$copy" reads "question, answer, differently"
    And the transcript of "chat" is "e1, e2, e3"

  Scenario: A fork fires session::created alone
    Given "created" is bound to "session::created"
    And "added" is bound to "session::message-added"
    When I call "session::fork" with {"session_id": "chat", "entry_id": "e2", "title": "What if"}
    Then its "/session_id" is called $copy
    And the answer has {"meta": {"title": "What if"}}
    And "created" hears {"session_id": "$copy", "title": "What if", "forked_from": "chat"}
    And "added" hears nothing more

  Scenario: The revisions of a fork start again at 0
    Given the message "e1" of "chat" becomes "another question"
    When I call "session::fork" with {"session_id": "chat", "entry_id": "e1"}
    Then its "/session_id" is called $copy
    And the transcript of "$copy" reads "another question"
    When I call "session::messages" with {"session_id": "$copy"}
    Then its "/messages/0/entry_id" is called $entry
    When I call "session::get-message" with {"session_id": "$copy", "entry_id": "$entry"}
    Then the answer has {"entry": {"revision": 0}}
