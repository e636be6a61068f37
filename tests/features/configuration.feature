@bus
Feature: Configuration
  Every field changes without a restart. A configuration that cannot be built leaves the previous one running.

  Scenario: The limits of lists change
    Given 5 sessions
    When the configuration becomes
      """
      adapter: {name: fs, config: {data_dir: '$sessions'}}
      default_list_limit: 2
      max_list_limit: 4
      """
    And I call "session::list" with {}
    Then the answer lists 2 sessions
    When I call "session::list" with {"limit": 100}
    Then the answer lists 4 sessions
    When I call "session::config-status" with {}
    Then the answer is {"last_outcome": "applied", "last_error": null, "rejected_reloads": 0}

  Scenario: Another data directory takes the place of the first, without its sessions
    Given a session "chat"
    When the configuration becomes
      """
      adapter: {name: fs, config: {data_dir: '$sessions-elsewhere'}}
      """
    And I call "session::get" with {"session_id": "chat"}
    Then the answer is null

  Scenario: The state of the new store is replayed to subscribers
    Given a session "chat" with {"title": "Weather"}
    And the session "chat" has the entries
      | entry | role      | text    |
      | e1    | user      | Hi      |
      | e2    | assistant | draft   |
    And the message "e2" of "chat" becomes "final"
    And the configuration becomes
      """
      adapter: {name: fs, config: {data_dir: '$sessions-elsewhere'}}
      """
    And a session "gone"
    And "created" is bound to "session::created"
    And "added" is bound to "session::message-added"
    And "updated" is bound to "session::message-updated"
    And "deleted" is bound to "session::deleted"
    When the configuration becomes
      """
      adapter: {name: fs, config: {data_dir: '$sessions'}}
      """
    Then "deleted" hears {"session_id": "gone"}
    And "created" hears {"session_id": "chat", "title": "Weather"}
    And "added" hears {"session_id": "chat", "entry_id": "e1"}
    And "updated" hears {"session_id": "chat", "entry_id": "e2", "revision": 1}

  Scenario Outline: A configuration that cannot be built: <why>
    Given a session "chat"
    When the configuration becomes
      """
      adapter: <adapter>
      """
    And I call "session::config-status" with {}
    Then the answer has {"last_outcome": "rejected", "rejected_reloads": 1}
    And its "/last_error" is called $why
    When a "user" says "Hi" as "e1" in "chat"
    Then the transcript of "chat" is "e1"

    Examples:
      | why                             | adapter                                               |
      | a directory that cannot be read | {name: fs, config: {data_dir: /dev/null/sessions}}    |
      | a bridge to itself              | {name: bridge, config: {url: '$url'}}                 |
      | a bridge without a url          | {name: bridge}                                        |
      | an adapter that does not exist  | {name: nowhere}                                       |

  Scenario Outline: A misconfigured bridge is fatal at boot
    Then an instance does not start with
      """
      adapter: <adapter>
      """

    Examples:
      | adapter                                       |
      | {name: bridge}                                |
      | {name: bridge, config: {url: 'http://main'}}  |
