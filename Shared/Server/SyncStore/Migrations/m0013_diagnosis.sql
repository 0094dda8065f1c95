-- Logs that operators request from devices (deploy/manual/DiagnosisLogs.md). The console creates a task, an ordinary
-- push notifies the device, and the relay stores the parts, which arrive as device operations.
--
-- Codes of diagnosis_task.state (DiagnosisState):
--   1 asked          2 coming           3 whole                4 refused (by the device or by the service)

CREATE TABLE diagnosis_task (
    task_id text COLLATE "C" PRIMARY KEY,
    -- Rises with each task.
    number bigint GENERATED ALWAYS AS IDENTITY,
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    -- The bound user when the device last sent a part or a refusal; empty: it has sent nothing.
    user_id text COLLATE "C" NOT NULL DEFAULT '',
    description text NOT NULL,
    operator text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When the task last changed.
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    from_ms bigint NOT NULL,
    to_ms bigint NOT NULL,
    level text NOT NULL,
    network text NOT NULL,
    limit_bytes integer NOT NULL,
    -- Rises when the task is restarted: data of an earlier run is not accepted any more.
    run integer NOT NULL DEFAULT 1,
    state smallint NOT NULL DEFAULT 1 /* asked */ CHECK (state BETWEEN 1 AND 4),
    refusal text NOT NULL DEFAULT '',
    file text NOT NULL DEFAULT '',
    file_bytes integer NOT NULL DEFAULT 0,
    -- In lower-case hex.
    file_sha256 text COLLATE "C" NOT NULL DEFAULT '',
    part_count integer NOT NULL DEFAULT 0,
    taken_parts integer NOT NULL DEFAULT 0,
    taken_bytes integer NOT NULL DEFAULT 0
);
CREATE INDEX diagnosis_task_by_instance ON diagnosis_task (instance_id, number);
CREATE INDEX diagnosis_task_by_change ON diagnosis_task (changed_at);
SELECT belt('diagnosis_task');

-- Parts of the present run's file.
CREATE TABLE diagnosis_part (
    task_id text COLLATE "C" NOT NULL REFERENCES diagnosis_task ON DELETE CASCADE,
    -- From 1 on.
    number integer NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (task_id, number)
);
