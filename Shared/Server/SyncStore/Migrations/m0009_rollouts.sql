-- Staged roll-outs of global pushes. The codes of rollout.kind are those of ChannelKind (m0002_instances).
--
-- Codes of rollout.state (RolloutState):
--   1 running        2 paused           3 stopped              4 completed

-- A global push that widens from a small share of the devices to all. Each stage is an oplog for the slots that it
-- adds. One transaction makes the oplog and advances this row, so each stage is made exactly once, however many
-- processes widen.
CREATE TABLE rollout (
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    third_message_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (2 /* globalUser */, 3 /* globalDevice */)),
    payload bytea, -- null: no further stage is made
    is_binary boolean NOT NULL,
    operating_system smallint NOT NULL,
    minimum_version text NOT NULL,
    maximum_version text NOT NULL,
    valid_until_ms bigint NOT NULL, -- 0: the instance's retention for each stage
    share_start smallint NOT NULL, -- the first slot of the first stage
    stages integer[] NOT NULL, -- slots that are covered after each stage, rising to 10,000
    stage_ids text[] COLLATE "C" NOT NULL,
    stage_hashes bigint[] NOT NULL,
    oplog_ids bigint[] NOT NULL DEFAULT '{}', -- of the stages made
    told_stages integer NOT NULL DEFAULT 0, -- how many of them were announced to gateways
    state smallint NOT NULL DEFAULT 1 /* running */ CHECK (state BETWEEN 1 AND 4),
    stage_interval interval, -- null: operators widen it
    due_at timestamptz, -- of the next stage; null: not by time, or paused or ended
    wait_left interval, -- while paused: the remaining time until then
    started_by text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text COLLATE "C" NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, biz_type, third_message_id),
    FOREIGN KEY (instance_id, biz_type) REFERENCES sync_configuration ON DELETE CASCADE
);
CREATE INDEX rollout_by_time ON rollout (instance_id, started_at);
CREATE INDEX rollout_due ON rollout (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX rollout_untold ON rollout (changed_at) WHERE told_stages < cardinality(oplog_ids);
SELECT belt('rollout');
GRANT SELECT, UPDATE (told_stages) ON rollout TO mss_writer;
GRANT SELECT ON rollout TO mss_operator;
