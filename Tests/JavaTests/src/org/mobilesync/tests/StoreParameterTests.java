package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncParameter;
import org.mobilesync.SyncParameterValue;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.store.Parameters;
import org.mobilesync.internal.wire.Parameter;

/** The subscription parameters in a local store, and the migration of a store without them. */
class StoreParameterTests extends OpenedStore {
    @Test
    void aStoreOfVersion1KeepsItsDataAndGetsParameters() throws Exception {
        push(batch(0, 4, 4));
        store.close();
        SyncDatabase database = JdbcDatabase.open(folder.resolve("s").toString());
        database.execute("DROP TABLE read_mark");
        database.execute("DROP INDEX oplog_conversation");
        database.execute("ALTER TABLE oplog DROP COLUMN conversation");
        database.execute("DROP TABLE parameter");
        database.execute("DROP TABLE recovery");
        database.execute("ALTER TABLE store DROP COLUMN key_check");
        database.execute("PRAGMA user_version = 1");
        database.close();
        open();
        assertEquals(4, position());
        assertTrue(store.parameters().all("u1").isEmpty());
    }

    @Test
    void parametersBelongToAUserAndAChangedOneStaysPending() {
        Parameters parameters = store.parameters();
        parameters.set("u1", "NEWS", "region", SyncParameterValue.text("no\"rth"), false);
        parameters.set("u1", "NEWS", "max", SyncParameterValue.number(2.5), true);
        parameters.set(null, "NEWS", "urgent", SyncParameterValue.flag(true), false);
        reopen();
        parameters = store.parameters();
        assertEquals(SyncParameterValue.flag(true), parameters.all(null).get(0).value());
        List<Parameter> sent = parameters.pending("u1");
        assertEquals("max 2.5", sent.get(0).name + " " + sent.get(0).value);
        parameters.set("u1", "NEWS", "max", SyncParameterValue.number(3), true);
        parameters.answered(sent, "u1", true);
        assertTrue(parameters.all("u1").get(0).isPending());
        parameters.answered(parameters.pending("u1"), "u1", true);
        assertFalse(parameters.all("u1").get(0).isPending());
        assertEquals(SyncParameterValue.text("no\"rth"), parameters.all("u1").get(1).value());
        // A removal waits for the service too.
        parameters.set("u1", "NEWS", "max", null, true);
        assertEquals(1, parameters.all("u1").size());
        assertEquals("", parameters.pending("u1").get(0).value);
        parameters.answered(parameters.pending("u1"), "u1", true);
        assertTrue(parameters.pending("u1").isEmpty());
        // A refused value is gone.
        parameters.set("u1", "NEWS", "unknown", SyncParameterValue.number(1), true);
        parameters.answered(parameters.pending("u1"), "u1", false);
        assertEquals(1, parameters.all("u1").size());
    }

    @Test
    void theServersListReplacesKnownValuesAndLeavesPendingOnes() {
        Parameters parameters = store.parameters();
        parameters.set("u1", "NEWS", "region", SyncParameterValue.text("mine"), true);
        Parameter other = new Parameter();
        other.bizType = "NEWS";
        other.name = "region";
        other.value = "\"theirs\"";
        Parameter max = new Parameter();
        max.bizType = "NEWS";
        max.name = "max";
        max.value = "1.0E3";
        parameters.replaceServerValues(Arrays.asList(other, max), "u1");
        assertEquals("[1000.0, \"mine\"]",
            parameters.all("u1").stream().map(SyncParameter::value).collect(Collectors.toList()).toString());
        parameters.replaceServerValues(Collections.<Parameter>emptyList(), "u1");
        assertEquals(1, parameters.all("u1").size());
    }
}
