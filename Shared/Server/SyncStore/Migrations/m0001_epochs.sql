-- Database epochs (Design.md#failover-and-epochs), and what the definitions of the tables need.
--
-- A migration has tables, with their indexes, first rows, policies and rights. The functions are in ../Functions,
-- except the few that the definition of a table, its first row or a policy needs: they are beside it.
--
-- Tables with rows for each channel, receiver, session or device operation are in the schema `delivery`: the hot path
-- writes them. Tables that the service has once are in `public`: control data, audit records, admission, statistics,
-- the console. CREATE and DROP name the schema `delivery`. All other statements find both schemas by the search path,
-- which `mssctl migrate` sets for the whole database. A function with the rights of mss_owner sets its own.
--
-- A tier changes several tables, or a table with a rule, only through functions. They run with the rights of mss_owner
-- (SECURITY DEFINER), and the tier may execute nothing else. Each file grants the rights to its objects (SEC10).

-- ---- database epochs -----------------------------------------------------------------------------------------------

-- The name of the current WAL file shows a new timeline at once after a promotion; pg_control_checkpoint() shows it
-- only later.
CREATE FUNCTION current_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;

-- A restored dump runs under a different system identifier.
CREATE FUNCTION current_system() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT system_identifier FROM pg_control_system()
$$;

CREATE TABLE incarnation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system bigint NOT NULL,
    timeline bigint NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 0 AND epoch < 8192)
);
INSERT INTO incarnation (system, timeline, epoch) VALUES (current_system(), current_timeline(), 0);

-- The revision of a row that is created in the present epoch.
CREATE FUNCTION first_revision() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (epoch << 40) + 1 FROM incarnation
$$;

-- ---- row-level security (second check) -----------------------------------------------------------------------------

-- mss_operator executes queries about one instance. Its connection names the instance (mss.instance) and then reads and
-- writes only rows of that instance, also where a statement lacks the condition. Before that it reads none. Tables
-- whose key has a channel id have no instance: their keys are found through `channel`. The owner's functions and the
-- writer work for many instances in one statement. For them the policy is the constant true, which the planner removes:
-- a condition whose selectivity the planner must guess would change the join order of every push.
CREATE FUNCTION belt(in_table regclass) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', in_table);
    EXECUTE format('CREATE POLICY every_instance ON %s TO mss_owner, mss_writer USING (true)', in_table);
    EXECUTE format(
        'CREATE POLICY one_instance ON %s TO mss_operator
            USING (instance_id = current_setting(''mss.instance'', true))', in_table);
END $$;
