Feature: Listing sessions
  Sessions are listed page by page, in one of three orders, filtered by status and by metadata.

  Scenario: A page has 50 sessions unless a limit is given
    Given 60 sessions
    When I call "session::list" with {}
    Then the answer lists 50 sessions
    When I call "session::list" with {"limit": 7}
    Then the answer lists 7 sessions

  Scenario: A limit is clamped to the configured maximum
    Given 510 sessions
    When I call "session::list" with {"limit": 1000}
    Then the answer lists 500 sessions

  Scenario: Pages follow each other until none remain
    Given 3 sessions
    When I call "session::list" with {"limit": 2, "order": "created_asc"}
    Then the answer lists the sessions "s0000, s0001"
    And its "/next_cursor" is called $next
    When I call "session::list" with {"limit": 2, "order": "created_asc", "cursor": "$next"}
    Then the answer lists the sessions "s0002"
    And the answer has no "/next_cursor"

  @service
  Scenario Outline: The order <order>
    Given a session "a"
    And a session "b"
    And a session "c"
    When I call "session::set-meta" with {"session_id": "b", "title": "changed last"}
    And I call "session::list" with {"order": "<order>"}
    Then the answer lists the sessions "<sessions>"

    Examples:
      | order        | sessions |
      | created_asc  | a, b, c  |
      | created_desc | c, b, a  |
      | updated_desc | b, c, a  |

  @service
  Scenario: The session that changed last comes first by default
    Given a session "a"
    And a session "b"
    When I call "session::set-meta" with {"session_id": "a", "title": "changed last"}
    And I call "session::list" with {}
    Then the answer lists the sessions "a, b"

  Scenario: Only sessions with a status
    Given a session "a"
    And a session "b"
    When I call "session::set-status" with {"session_id": "b", "status": "working"}
    And I call "session::list" with {"status": "working"}
    Then the answer lists the sessions "b"

  Scenario Outline: Every given key of the metadata must equal the stored value
    Given a session "mine" with {"metadata": {"owner": "u_1", "project": "p"}}
    And a session "theirs" with {"metadata": {"owner": "u_2"}}
    And a session "plain"
    When I call "session::list" with {"metadata": <filter>, "order": "created_asc"}
    Then the answer lists the sessions "<sessions>"

    Examples:
      | filter                            | sessions            |
      | {"owner": "u_1"}                  | mine                |
      | {"owner": "u_1", "project": "p"}  | mine                |
      | {"owner": "u_1", "project": "q"}  |                     |
      | {}                                | mine, theirs, plain |
