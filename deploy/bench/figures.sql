-- Fills the figures' tables as that many facts of 30 days would leave them: each push has three, accepted, handed out
-- and confirmed. Variables: facts. A million users with a device each, 1,000 configurations; user `many` has pushes of
-- 1,000 Sync IDs, user `big` a million pushes, or a third of all.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
SET work_mem = '512MB';
SELECT :facts / 3 AS pushes, least(1000000, greatest(1000, :facts / 100)) AS users,
    least(1000000, :facts / 9) AS big \gset
CREATE TABLE bench_index AS
    SELECT indexdef FROM pg_indexes
    WHERE tablename IN ('statistics_oplog', 'statistics_delivery', 'statistics_target_day', 'statistics_day_traits');
ALTER TABLE statistics_oplog DROP CONSTRAINT statistics_oplog_pkey;
ALTER TABLE statistics_delivery DROP CONSTRAINT statistics_delivery_pkey;
ALTER TABLE statistics_target_day DROP CONSTRAINT statistics_target_day_pkey;
ALTER TABLE statistics_day_traits DROP CONSTRAINT statistics_day_traits_pkey;
DROP INDEX statistics_oplog_by_target, statistics_oplog_by_age, statistics_delivery_dead, statistics_delivery_by_target,
    statistics_target_day_by_age, statistics_day_traits_by_age;

INSERT INTO statistics_target (target_id, instance_id, kind, target) OVERRIDING SYSTEM VALUE
SELECT n, 'bench', 0, 'user-' || n FROM generate_series(1, :users) n
UNION ALL SELECT :users + 1, 'bench', 0, 'many' UNION ALL SELECT :users + 2, 'bench', 0, 'big';
-- Three channels for each user, then those of `many`, of `big`, and one that is everybody's.
INSERT INTO statistics_channel (channel_id, instance_id, kind, biz_type, target_id)
SELECT 3 * n - k, 'bench', 0, 'SYNC-' || (7 * n + k) % 1000, n
FROM generate_series(1, :users) n, generate_series(0, 2) k;
INSERT INTO statistics_channel (channel_id, instance_id, kind, biz_type, target_id)
SELECT 3 * :users + n, 'bench', 0, 'SYNC-' || n % 1000, :users + 1 FROM generate_series(1, 1000) n
UNION ALL SELECT 3 * :users + 1001, 'bench', 0, 'SYNC-0', :users + 2
UNION ALL SELECT 3 * :users + 1002, 'bench', 2, 'GLOBAL', NULL;

-- Of 30 days, in the order of time. Every fifth push is one of the last two users' as long as those have too few.
INSERT INTO statistics_oplog (
    channel_id, oplog_id, noted_at, target_id, accepted_at, first_handed_out_at, first_confirmed_at, is_live)
SELECT p.channel_id, p.n, p.at, p.target_id, p.at, p.at + interval '5 ms',
    CASE WHEN p.n % 10 <> 0 THEN p.at + p.n % 900 * interval '1 ms' END, false
FROM (
    SELECT i.n, date_trunc('day', now()) - interval '29 days' + i.n * (interval '29 days' / :pushes) AS at,
        CASE WHEN i.n % (:pushes / :big) = 0 THEN 3 * :users + 1001
            WHEN i.n % greatest(:pushes / 100000, 1) = 1 THEN 3 * :users + 1 + i.n % 1000
            ELSE 3 * i.user_id - i.n % 3 END AS channel_id,
        CASE WHEN i.n % (:pushes / :big) = 0 THEN :users + 2
            WHEN i.n % greatest(:pushes / 100000, 1) = 1 THEN :users + 1 ELSE i.user_id END AS target_id
    FROM (SELECT n, 1 + n * 7919 % :users AS user_id FROM generate_series(1::bigint, :pushes) n) i
) p;
INSERT INTO statistics_delivery (
    channel_id, oplog_id, handed_out_at, confirmed_at, attempts, operating_system, app_version, device_id, dead_user)
SELECT channel_id, oplog_id, first_handed_out_at, first_confirmed_at, 1, 1 + oplog_id % 2, '1.' || oplog_id % 6,
    'device-' || target_id, ''
FROM statistics_oplog;
INSERT INTO statistics_pull (channel_id, oplog_id, target_id, handed_out_at, confirmed_at)
SELECT 3 * :users + 1002, 1, n, now() - interval '1 day', now() FROM generate_series(1, :users) n;

INSERT INTO statistics_target_day (target_id, day, pushes, arrivals)
SELECT target_id, (accepted_at AT TIME ZONE 'UTC')::date, count(*), count(first_confirmed_at)
FROM statistics_oplog GROUP BY 1, 2;
INSERT INTO statistics_day (instance_id, biz_type, day, pushes, arrivals, dead_letters)
SELECT 'bench', 'SYNC-' || b, (now() AT TIME ZONE 'UTC')::date - d, 1000, 900, 1
FROM generate_series(0, 399) d, generate_series(0, 999) b;
INSERT INTO statistics_day_traits (instance_id, biz_type, day, operating_system, app_version, handed_out, confirmed)
SELECT 'bench', 'SYNC-' || b, (now() AT TIME ZONE 'UTC')::date - d, o, '1.' || v, 100, 90
FROM generate_series(0, 399) d, generate_series(0, 999) b, generate_series(1, 2) o, generate_series(0, 5) v;
INSERT INTO statistics_accepted (instance_id, span_minutes, begins_at, pushes)
SELECT 'bench', 1, date_trunc('minute', now()) - m * interval '1 minute', 1000 FROM generate_series(0, 35 * 1440) m
UNION ALL
SELECT 'bench', 60, date_trunc('hour', now()) - h * interval '1 hour', 60000 FROM generate_series(0, 35 * 24) h;
INSERT INTO statistics_arrival (instance_id, span_minutes, begins_at, bucket, arrivals)
SELECT 'bench', 1, date_trunc('minute', now()) - m * interval '1 minute', b, 100
FROM generate_series(0, 35 * 1440) m, generate_series(2, 12) b
UNION ALL SELECT 'bench', 60, date_trunc('hour', now()) - h * interval '1 hour', b, 6000
FROM generate_series(0, 35 * 24) h, generate_series(2, 12) b;
INSERT INTO statistics_connected (instance_id, minute, gateway_id, devices)
SELECT 'bench', date_trunc('minute', now()) - m * interval '1 minute', 'gateway-' || g, 25000
FROM generate_series(0, 35 * 1440) m, generate_series(1, 4) g;

SELECT indexdef FROM bench_index
\gexec
DROP TABLE bench_index;
VACUUM ANALYZE;
