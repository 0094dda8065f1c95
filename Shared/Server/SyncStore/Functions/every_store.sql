-- Views of all stores, in the schema `delivery` (Design.md#stores). Traces, sweeps, the notifier and the statistics
-- read them. With one store the tables themselves are in `delivery`, and there are no views. The views are made anew
-- with the functions, so they get the columns that a migration adds.
--
-- No statement can write through them. The rights and policies of the caller apply (security_invoker), so an operator's
-- connection reads the rows of its own instance only.

DO $$
DECLARE
    every_table text;
BEGIN
    IF {stores} > 1 THEN
        FOREACH every_table IN ARRAY '{channel,oplog,sync_point,reread}'::text[] LOOP
            EXECUTE format('CREATE OR REPLACE VIEW delivery.%I WITH (security_invoker = true) AS ', every_table) || (
                SELECT string_agg(format('SELECT * FROM delivery_%s.%I', store, every_table), ' UNION ALL ')
                FROM generate_series(0, {stores} - 1) AS store);
            EXECUTE format('GRANT SELECT ON delivery.%I TO mss_writer, mss_operator', every_table);
        END LOOP;
    END IF;
END $$;
