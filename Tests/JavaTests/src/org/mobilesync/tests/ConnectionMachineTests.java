package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.mobilesync.internal.connection.BoundUser;
import org.mobilesync.internal.connection.ConnectionEnd;
import org.mobilesync.internal.connection.ConnectionMachine;
import org.mobilesync.internal.connection.Heartbeat;
import org.mobilesync.internal.connection.OplogReport;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.BindResult;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.CaughtUp;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.ConfirmRecorded;
import org.mobilesync.internal.wire.ConfirmReport;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Connected;
import org.mobilesync.internal.wire.DeviceOperation;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.KeepParameters;
import org.mobilesync.internal.wire.LongList;
import org.mobilesync.internal.wire.OperationRefusal;
import org.mobilesync.internal.wire.OperationsTaken;
import org.mobilesync.internal.wire.OwnershipTaken;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.ParametersKept;
import org.mobilesync.internal.wire.Ping;
import org.mobilesync.internal.wire.Pong;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.ResentOplog;
import org.mobilesync.internal.wire.SessionState;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.StoredUpto;
import org.mobilesync.internal.wire.SubmitOperations;
import org.mobilesync.internal.wire.SummaryRequest;
import org.mobilesync.internal.wire.SyncPoint;
import org.mobilesync.internal.wire.UserParameters;

/** The device's table of DeviceProtocol.md, "A connection's life", event by event and in random orders. */
class ConnectionMachineTests {
    private static final List<SyncPoint> NO_POINTS = Collections.emptyList();
    private static final List<Parameter> NO_PARAMETERS = Collections.emptyList();

    private final RecordedActions actions = new RecordedActions();
    private final ConnectionMachine machine = new ConnectionMachine(actions, Heartbeat.Learned.NOTHING);
    private final BoundUser user = new BoundUser("u1", "s1", 1, 0);

    private void greet() {
        machine.opened(new Connect(), user, NO_POINTS, 0);
    }

    private void open() {
        greet();
        machine.received(connected(), 0);
        machine.received(bindResult(1, true), 0);
        actions.take();
    }

    private static Connected connected() {
        Connected connected = new Connected();
        connected.heartbeatSeconds = 60;
        connected.maxHeartbeatSeconds = 300;
        return connected;
    }

    private static BindResult bindResult(long number, boolean isAccepted) {
        BindResult result = new BindResult();
        result.bindNumber = number;
        result.accepted = isAccepted;
        return result;
    }

    private static Push push(long kind, long bindNumber) {
        ChannelBatch batch = new ChannelBatch();
        batch.kind = kind;
        batch.bizType = "UCHAT";
        batch.bindNumber = bindNumber;
        batch.upto = 1;
        Push push = new Push();
        push.batches.add(batch);
        return push;
    }

    private static OplogReport report() {
        OplogReport report = new OplogReport();
        report.resent.add(new ResentOplog());
        return report;
    }

    private static DeviceOperation operation(String id) {
        DeviceOperation operation = new DeviceOperation();
        operation.operationId = id;
        return operation;
    }

    @Test
    void theFirstFrameBindsTheUserAsBind1AndRequestsOwnership() {
        greet();
        Bind bind = actions.last(Connect.class).bind;
        assertEquals(1, bind.bindNumber);
        assertEquals("u1", bind.userId);
        assertTrue(bind.requestedByApp);
    }

    @Test
    void dataOfAUserIsStoredOnlyUnderTheAcceptedBind() {
        greet();
        machine.received(connected(), 0);
        machine.received(push(ChannelKind.USER, 1), 0);
        machine.received(push(ChannelKind.DEVICE, 0), 0);
        machine.received(bindResult(1, true), 0);
        machine.received(push(ChannelKind.GLOBAL_USER, 1), 0);
        machine.received(push(ChannelKind.USER, 2), 0);
        machine.received(push(77, 1), 0);
        assertEquals(2, actions.batches.size());
        assertEquals(ChannelKind.DEVICE, actions.batches.get(0).kind);
        assertEquals(ChannelKind.GLOBAL_USER, actions.batches.get(1).kind);
    }

    @Test
    void aPushBeforeConnectedAndASecondConnectedEndTheConnection() {
        greet();
        machine.received(push(ChannelKind.DEVICE, 0), 0);
        assertEquals(ConnectionEnd.Kind.LOST, actions.end.kind());
        ConnectionMachineTests other = new ConnectionMachineTests();
        other.open();
        other.machine.received(connected(), 0);
        assertEquals(ConnectionEnd.Kind.LOST, other.actions.end.kind());
    }

    @Test
    void framesOfAnotherBindOrRequestAreIgnored() {
        open();
        OwnershipTaken taken = new OwnershipTaken();
        taken.bindNumber = 7;
        SessionState state = new SessionState();
        state.bindNumber = 7;
        state.validity = 2;
        CaughtUp caughtUp = new CaughtUp();
        caughtUp.bindNumber = 7;
        ConfirmRecorded recorded = new ConfirmRecorded();
        recorded.reportId = 9;
        OperationsTaken operations = new OperationsTaken();
        operations.number = 9;
        for (Body body : new Body[] {taken, state, caughtUp, recorded, operations, bindResult(7, false),
            new HistoryPage(), new Pong(), new Connect(), new StoredAck(), null}) {
            machine.received(body, 0);
        }
        assertEquals(Collections.emptyList(), actions.take());
        assertNull(actions.end);
    }

    @Test
    void aPingIsAnsweredWithItsNumberInBothPhases() {
        greet();
        Ping ping = new Ping();
        ping.number = -1;
        machine.received(ping, 0);
        assertEquals(-1, actions.last(Pong.class).number);
    }

    @Test
    void aGapIsAcknowledgedUpToItAndEndsTheConnection() {
        open();
        StoredUpto upto = new StoredUpto();
        upto.upto = 3;
        machine.stored(Collections.singletonList(upto), new LongList(), true);
        assertEquals(Arrays.asList("send StoredAck", "end GAP"), actions.take());
    }

    @Test
    void oneReportIsInFlightAndItIsRepeatedWithANewNumberAfter30Seconds() {
        open();
        machine.collected(report(), 0);
        machine.collected(report(), 0);
        assertEquals(1, actions.count(ConfirmReport.class));
        ConfirmRecorded wrong = new ConfirmRecorded();
        wrong.reportId = 5;
        machine.received(wrong, 0);
        actions.take();
        machine.ticked(30_000);
        assertTrue(actions.take().contains("collectReport u1"));
        machine.collected(report(), 30_000);
        assertEquals(2, actions.last(ConfirmReport.class).reportId);
        ConfirmRecorded recorded = new ConfirmRecorded();
        recorded.reportId = 2;
        machine.received(recorded, 31_000);
        assertTrue(actions.take().contains("recorded u1"));
    }

    @Test
    void aNewUserGetsTheNextBindAndARepeatedCallOfTheAppBindsAgain() {
        open();
        machine.userChanged(new BoundUser("u1", "s1", 1, 0), NO_POINTS, NO_PARAMETERS, 0);
        assertEquals(0, actions.count(Bind.class));
        machine.userChanged(new BoundUser("u1", "s1", 2, 0), NO_POINTS, NO_PARAMETERS, 0);
        assertEquals(2, actions.last(Bind.class).bindNumber);
        machine.received(bindResult(2, true), 0);
        machine.userChanged(null, NO_POINTS, NO_PARAMETERS, 0);
        assertEquals("", actions.last(Bind.class).userId);
        assertEquals(3, actions.last(Bind.class).bindNumber);
        machine.received(push(ChannelKind.USER, 2), 0);
        assertEquals(0, actions.batches.size());
    }

    @Test
    void ownershipIsRecordedForTheBindThatRequestedIt() {
        open();
        OwnershipTaken taken = new OwnershipTaken();
        taken.bindNumber = 1;
        taken.ownershipEpoch = 9;
        machine.received(taken, 0);
        assertTrue(actions.take().contains("ownershipTaken 1 9"));
        BoundUser owner = user.owning(9);
        assertFalse(machine.needsBind(owner));
        ConnectionMachine next = new ConnectionMachine(actions, Heartbeat.Learned.NOTHING);
        next.opened(new Connect(), owner, NO_POINTS, 0);
        assertFalse(actions.last(Connect.class).bind.requestedByApp);
        assertEquals(9, actions.last(Connect.class).bind.ownershipEpoch);
    }

    @Test
    void silenceOf10SecondsAfterConnectOrAPingEndsTheConnection() {
        greet();
        machine.ticked(9_999);
        assertNull(actions.end);
        machine.ticked(10_000);
        assertEquals(ConnectionEnd.Kind.SILENT, actions.end.kind());
        ConnectionMachineTests other = new ConnectionMachineTests();
        other.open();
        other.machine.ticked(60_000);
        assertEquals(1, other.actions.count(Ping.class));
        other.machine.ticked(69_999);
        assertNull(other.actions.end);
        other.machine.ticked(70_000);
        assertEquals(ConnectionEnd.Kind.SILENT, other.actions.end.kind());
    }

    @Test
    void anyFrameAfterAPingIsASignOfLife() {
        open();
        machine.ticked(60_000);
        machine.received(new CaughtUp(), 69_000);
        machine.ticked(75_000);
        assertNull(actions.end);
        assertEquals(120_000, machine.deadlineMs());
    }

    @Test
    void aCloseWithAClockAndOneOfAnotherSecretAreFollowed() {
        open();
        Close close = new Close();
        close.code = 5_004;
        close.serverTimeMs = 17;
        machine.received(close, 0);
        assertEquals(Arrays.asList("setSigningTime 17", "replaceIdentity", "end CLOSED"), actions.take());
        machine.received(connected(), 0);
        machine.ticked(1_000_000);
        assertEquals(Collections.emptyList(), actions.take());
    }

    @Test
    void fourRequestsAreInFlightAndEachOneIsAnsweredOrTimesOut() {
        open();
        List<String> answers = new ArrayList<>();
        for (int number = 0; number < 6; number++) {
            int request = number;
            machine.ask(new HistoryRequest(), page -> answers.add(request + (page == null ? "-" : "+")), 0);
        }
        assertEquals(4, actions.count(HistoryRequest.class));
        HistoryPage page = new HistoryPage();
        page.requestNumber = 2;
        machine.received(page, 0);
        assertEquals(5, actions.count(HistoryRequest.class));
        machine.ticked(30_000);
        assertEquals(6, actions.count(HistoryRequest.class));
        machine.end(ConnectionEnd.left());
        Collections.sort(answers);
        assertEquals(Arrays.asList("0-", "1+", "2-", "3-", "4-", "5-"), answers);
    }

    @Test
    void oneFrameOfOperationsIsInFlightAndItsRefusalsAreFollowed() {
        open();
        List<DeviceOperation> operations = new ArrayList<>();
        for (String id : new String[] {"taken", "over", "bind", "later"}) operations.add(operation(id));
        machine.collected(operations, "u1", 0);
        machine.collected(operations, "u1", 0);
        assertEquals(1, actions.count(SubmitOperations.class));
        OperationsTaken reply = new OperationsTaken();
        reply.number = 1;
        reply.retryAfterMs = 5_000;
        long[] codes = {400, 409, 429};
        for (int index = 0; index < codes.length; index++) {
            OperationRefusal refusal = new OperationRefusal();
            refusal.operationId = operations.get(index + 1).operationId;
            refusal.code = codes[index];
            reply.refusals.add(refusal);
        }
        machine.received(reply, 0);
        assertEquals(Collections.singletonList("taken"), actions.answer.taken);
        assertEquals("over", actions.answer.over.get(0).operationId);
        assertEquals(Arrays.asList("bind", "later"), actions.answer.free);
        // Code 409 waits for the next bind.
        machine.ticked(5_000);
        machine.collected(operations, "u1", 5_000);
        assertEquals(1, actions.count(SubmitOperations.class));
        machine.userChanged(new BoundUser("u1", "s1", 2, 0), NO_POINTS, NO_PARAMETERS, 5_000);
        machine.received(bindResult(2, true), 5_000);
        assertTrue(actions.take().contains("collectOperations u1"));
    }

    @Test
    void parametersGoOneFrameAtATimeAndAreDecidedByTheAnswer() {
        open();
        List<Parameter> values = new ArrayList<>();
        for (int number = 0; number < 65; number++) values.add(new Parameter());
        machine.collectedParameters(values, "u1", 0);
        machine.collectedParameters(values, "u1", 0);
        assertEquals(1, actions.count(KeepParameters.class));
        assertEquals(64, actions.last(KeepParameters.class).parameters.size());
        assertEquals(1, actions.last(KeepParameters.class).bindNumber);
        machine.received(kept(2, RequestRefusal.NONE), 0);
        assertFalse(actions.take().contains("parametersAnswered 64 u1 null"));
        machine.received(kept(1, RequestRefusal.NONE), 0);
        assertEquals(Arrays.asList("parametersAnswered 64 u1 null", "collectParameters u1"), actions.take());
        machine.collectedParameters(values, "u1", 0);
        machine.received(kept(2, RequestRefusal.INVALID), 0);
        assertTrue(actions.take().contains("parametersAnswered 64 u1 why"));
    }

    @Test
    void parametersThatTheServiceCouldNotStoreAreSentAgainAfterAPauseOrUnderTheNextBind() {
        open();
        List<Parameter> values = Collections.singletonList(new Parameter());
        machine.collectedParameters(values, "u1", 0);
        machine.received(kept(1, RequestRefusal.TRY_AGAIN), 0);
        machine.collectedParameters(values, "u1", 999);
        assertEquals(1, actions.count(KeepParameters.class));
        actions.take();
        machine.ticked(1_000);
        assertTrue(actions.take().contains("collectParameters u1"));
        machine.collectedParameters(values, "u1", 1_000);
        machine.userChanged(new BoundUser("u2", "s", 2, 0), NO_POINTS, values, 1_000);
        assertEquals(values, actions.last(Bind.class).parameters);
        machine.received(bindResult(2, true), 1_000);
        assertTrue(actions.take().contains("collectParameters u2"));
        machine.collectedParameters(values, "u2", 1_000);
        assertEquals(3, actions.last(KeepParameters.class).number);
        machine.ticked(31_000);
        assertEquals(ConnectionEnd.Kind.SILENT, actions.end.kind());
    }

    @Test
    void parametersThatAnotherDeviceOwnsAreSentEverMoreRarely() {
        open();
        List<Parameter> values = Collections.singletonList(new Parameter());
        long now = 0;
        for (long pause : new long[] {1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000}) {
            machine.collectedParameters(values, "u1", now);
            machine.received(kept(actions.last(KeepParameters.class).number, RequestRefusal.NOT_ELIGIBLE), now);
            long sent = actions.count(KeepParameters.class);
            now += pause;
            machine.collectedParameters(values, "u1", now - 1);
            assertEquals(sent, actions.count(KeepParameters.class), "before " + pause);
        }
        machine.collectedParameters(values, "u1", now);
        assertEquals(9, actions.count(KeepParameters.class));
    }

    @Test
    void theServersValuesCountOnlyForTheAcceptedBind() {
        open();
        UserParameters list = new UserParameters();
        list.bindNumber = 2;
        machine.received(list, 0);
        assertFalse(actions.take().contains("replaceParameters 0 u1"));
        list.bindNumber = 1;
        machine.received(list, 0);
        assertTrue(actions.take().contains("replaceParameters 0 u1"));
    }

    private static ParametersKept kept(long number, long refusal) {
        ParametersKept reply = new ParametersKept();
        reply.number = number;
        reply.refusal = refusal;
        reply.reason = "why";
        return reply;
    }

    @Test
    void operationsWithoutAnAnswerFor30SecondsEndTheConnection() {
        open();
        machine.collected(Collections.singletonList(operation("o")), "u1", 0);
        machine.ticked(29_999);
        assertNull(actions.end);
        machine.ticked(30_000);
        assertEquals(ConnectionEnd.Kind.SILENT, actions.end.kind());
    }

    /** Random sequences of all events, from a seed. */
    @Test
    void noWalkActsAfterItsEndOrMixesUsers() {
        for (int seed = 0; seed < 3_000; seed++) walk(seed);
    }

    private static void walk(int seed) {
        Random random = new Random(seed);
        RecordedActions actions = new RecordedActions();
        ConnectionMachine machine = new ConnectionMachine(actions, Heartbeat.Learned.NOTHING);
        int[] open = {0};
        long now = 0;
        machine.opened(new Connect(), random.nextBoolean() ? new BoundUser("u0", "s", 1, 0) : null, NO_POINTS, now);
        for (int step = 0; step < 60; step++) {
            now += random.nextInt(9_000);
            boolean hasEnded = actions.end != null;
            int before = actions.names.size();
            step(random, machine, open, now);
            String where = "seed " + seed + " step " + step;
            if (hasEnded) assertEquals(before, actions.names.size(), where + ": acted after its end");
            for (ChannelBatch batch : actions.batches) {
                assertTrue(batch.kind != ChannelKind.USER || batch.bindNumber <= lastBind(actions), where);
            }
        }
        machine.end(ConnectionEnd.left());
        assertEquals(0, open[0], "seed " + seed + ": a request had no answer");
        long last = 0;
        for (Body frame : actions.frames) {
            if (!(frame instanceof Bind)) continue;
            assertTrue(((Bind) frame).bindNumber > last, "seed " + seed + ": bind numbers must rise");
            last = ((Bind) frame).bindNumber;
        }
    }

    private static long lastBind(RecordedActions actions) {
        long last = 0;
        for (Body frame : actions.frames) {
            if (frame instanceof Bind) last = ((Bind) frame).bindNumber;
            if (frame instanceof Connect && ((Connect) frame).bind != null) last = 1;
        }
        return last;
    }

    private static void step(Random random, ConnectionMachine machine, int[] open, long now) {
        int number = random.nextInt(4);
        switch (random.nextInt(16)) {
            case 0:
                machine.received(connected(), now);
                break;
            case 1:
                machine.received(bindResult(number, random.nextBoolean()), now);
                break;
            case 2:
                machine.received(push(random.nextInt(5), number), now);
                break;
            case 3:
                ConfirmRecorded recorded = new ConfirmRecorded();
                recorded.reportId = number;
                machine.received(recorded, now);
                break;
            case 4:
                BoundUser other = number == 0 ? null : new BoundUser("u" + number, "s", 2 + now, 0);
                machine.userChanged(other, NO_POINTS, NO_PARAMETERS, now);
                break;
            case 5:
                machine.collected(report(), now);
                break;
            case 6:
                open[0] += 1;
                machine.ask(random.nextBoolean() ? new HistoryRequest() : new SummaryRequest(),
                    page -> open[0] -= 1, now);
                break;
            case 7:
                HistoryPage page = new HistoryPage();
                page.requestNumber = number;
                machine.received(page, now);
                break;
            case 8:
                machine.collected(Collections.singletonList(operation("o")), "u" + number, now);
                break;
            case 9:
                OperationsTaken taken = new OperationsTaken();
                taken.number = number;
                machine.received(taken, now);
                break;
            case 10:
                machine.foregroundChanged(random.nextBoolean(), now);
                break;
            case 11:
                machine.stored(Collections.singletonList(new StoredUpto()), new LongList(), random.nextInt(20) == 0);
                break;
            case 12:
                machine.ticked(now);
                break;
            case 13:
                ParametersKept kept = new ParametersKept();
                kept.number = number;
                kept.refusal = random.nextInt(4);
                machine.received(kept, now);
                break;
            case 14:
                machine.collectedParameters(Collections.singletonList(new Parameter()), "u" + number, now);
                break;
            default:
                Close close = new Close();
                close.code = random.nextInt(10_000);
                machine.received(random.nextInt(8) == 0 ? close : null, now);
        }
    }
}
