-- Audit records of operators.
--
-- Codes of operation_record.action (OperationAction):
--   1 createConfiguration   2 modifyConfiguration   3 deleteConfiguration   4 publishConfiguration
--   5 disableConfiguration
--   10 createSync           11 recall               12 replay               13 revokeSessions
--   20 createInstance       21 modifyInstance       22 enableInstance       23 disableInstance
--   24 enableSignature      25 disableSignature
--   30 createKey            31 revokeKey            32 resealKey
--   40 releaseDevice        41 disconnectDevice
--   50 createUser           51 modifyUser           52 removeUser           53 changePassword
--   54 signIn               55 failedSignIn         56 signOut              57 inviteUser
--   58 failedConfirmation
--   60 startRollout         61 widenRollout         62 pauseRollout         63 resumeRollout
--   64 stopRollout
--   70 retryOperation
--   80 createDiagnosis      81 restartDiagnosis     82 deleteDiagnosis      83 downloadDiagnosis

-- The actions of operators: append-only and chained by hashes (C9, SEC15). No tier may change or remove a row, and only
-- record_operation inserts rows.
CREATE TABLE operation_record (
    number bigint PRIMARY KEY,
    -- Never falls from one number to the next, also when the clock was set back.
    recorded_at timestamptz NOT NULL,
    -- As one_line encodes them, like the subject: no text of a record contains a line break.
    actor text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL, -- the actor's address or host; empty: unknown
    action smallint NOT NULL,
    instance_id text COLLATE "C" NOT NULL, -- empty: no instance
    subject text COLLATE "C" NOT NULL, -- Sync ID, key, user, device …
    -- JSON; null: none.
    before text,
    after text,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL
);
-- One index for each combination of filters, so each query finds its newest rows without reading others. They contain
-- the negative number: otherwise the planner could choose the primary key, which has the same order but reads every row
-- where few pass the filters.
CREATE INDEX operation_record_by_time ON operation_record (recorded_at, number);
CREATE INDEX operation_record_i ON operation_record (instance_id, (-number));
CREATE INDEX operation_record_u ON operation_record (actor, (-number));
CREATE INDEX operation_record_a ON operation_record (action, (-number));
CREATE INDEX operation_record_iu ON operation_record (instance_id, actor, (-number));
CREATE INDEX operation_record_ia ON operation_record (instance_id, action, (-number));
CREATE INDEX operation_record_ua ON operation_record (actor, action, (-number));
CREATE INDEX operation_record_iua ON operation_record (instance_id, actor, action, (-number));
SELECT belt('operation_record');
-- The console reads the records of all instances; its own rules decide which of them an operator sees.
CREATE POLICY every_record ON operation_record TO mss_console USING (true);
GRANT SELECT ON operation_record TO mss_writer, mss_console;

-- The end of the chain. A transaction that records holds this row's lock until its commit, so numbers have no gap and
-- rise in commit order.
CREATE TABLE record_head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    number bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    hash bytea NOT NULL
);
INSERT INTO record_head (number, recorded_at, hash) VALUES (0, '-infinity', decode(repeat('00', 32), 'hex'));
GRANT SELECT ON record_head TO mss_writer, mss_console;

-- Contents of the pushes that operators made, each beside its audit record. A content is kept for a time of its own:
-- longer than the oplog, but not for ever like the record, which has only the SHA-256. A recall of the push erases the
-- content here too.
CREATE TABLE record_content (
    number bigint PRIMARY KEY REFERENCES operation_record,
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL, -- empty: a global push
    third_message_id text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    is_binary boolean NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX record_content_by_push ON record_content (instance_id, third_message_id);
CREATE INDEX record_content_by_time ON record_content (recorded_at);
SELECT belt('record_content');
CREATE POLICY every_content ON record_content TO mss_console USING (true);
GRANT SELECT ON record_content TO mss_console;
