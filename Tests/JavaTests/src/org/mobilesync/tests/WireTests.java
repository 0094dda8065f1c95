package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncAppKey;
import org.mobilesync.internal.connection.ConnectSigner;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.CaughtUp;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.ConfirmReport;
import org.mobilesync.internal.wire.ConfirmedOplogs;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Connected;
import org.mobilesync.internal.wire.DeviceOperation;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.Foreground;
import org.mobilesync.internal.wire.FrameDecoder;
import org.mobilesync.internal.wire.FrameException;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.KeepParameters;
import org.mobilesync.internal.wire.OperationsTaken;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.Ping;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.PushToken;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.StoredUpto;
import org.mobilesync.internal.wire.SubmitOperations;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SummaryRequest;
import org.mobilesync.internal.wire.SyncPoint;
import org.mobilesync.internal.wire.WireReader;

/** Frames and messages: golden bytes of DeviceProtocol.md, every split, hostile input. */
class WireTests {
    private static final long CREATED = 1_700_000_000_000L;

    private static byte[] counted(int first, int count) {
        byte[] bytes = new byte[count];
        for (int index = 0; index < count; index++) bytes[index] = (byte) (first + index);
        return bytes;
    }

    private static Connect connect() {
        Connect connect = new Connect();
        connect.protocolVersion = 1;
        connect.instanceId = "demo_app";
        connect.deviceId = "d1";
        connect.storeId = "s1";
        connect.osName = "iOS";
        connect.appVersion = "2.0";
        connect.bind = new Bind();
        connect.bind.bindNumber = 1;
        connect.bind.userId = "u1";
        connect.bind.sessionId = "x";
        SyncPoint point = new SyncPoint();
        point.bizType = "UCHAT";
        point.oplogId = 4;
        connect.bind.syncPoints.add(point);
        return connect;
    }

    private static Connect signedConnect() {
        Connect connect = connect();
        connect.deviceSecret = counted(0x20, 32);
        SyncAppKey key = new SyncAppKey("k1", Base64.getEncoder().encodeToString(counted(0, 32)));
        new ConnectSigner(key).sign(connect, CREATED, counted(0, 16));
        return connect;
    }

    private static Connected connected() {
        Connected connected = new Connected();
        connected.connectionId = "17";
        connected.heartbeatSeconds = 60;
        connected.maxFrameBytes = 65_536;
        connected.serverTimeMs = CREATED;
        connected.firstResendMs = 10_000;
        connected.maxHeartbeatSeconds = 300;
        return connected;
    }

    private static Ping ping() {
        Ping ping = new Ping();
        ping.number = 7;
        return ping;
    }

    private static Push push() {
        Entry entry = new Entry();
        entry.oplogId = 9;
        entry.payload = "hello".getBytes(StandardCharsets.UTF_8);
        entry.thirdMessageId = "m1";
        entry.createdAtMs = CREATED;
        ChannelBatch batch = new ChannelBatch();
        batch.bizType = "UCHAT";
        batch.bindNumber = 1;
        batch.after = 4;
        batch.upto = 9;
        batch.entries.add(entry);
        Push push = new Push();
        push.batches.add(batch);
        return push;
    }

    private static StoredAck storedAck() {
        StoredUpto upto = new StoredUpto();
        upto.bizType = "UCHAT";
        upto.bindNumber = 1;
        upto.upto = 9;
        StoredAck ack = new StoredAck();
        ack.channels.add(upto);
        return ack;
    }

    private static ConfirmReport report() {
        ConfirmedOplogs oplogs = new ConfirmedOplogs();
        oplogs.bizType = "UCHAT";
        oplogs.bindNumber = 1;
        oplogs.oplogIds.add(9);
        oplogs.oplogIds.add(300);
        ConfirmReport report = new ConfirmReport();
        report.reportId = 1;
        report.channels.add(oplogs);
        return report;
    }

    private static HistoryRequest question() {
        HistoryRequest request = new HistoryRequest();
        request.requestNumber = 1;
        request.bizType = "UCHAT";
        request.bindNumber = 1;
        request.before = 9;
        request.count = 20;
        return request;
    }

    private static SummaryRequest conversations() {
        SummaryRequest request = new SummaryRequest();
        request.requestNumber = 1;
        request.bindNumber = 1;
        request.count = 16;
        request.conversationsOf = "UCHAT";
        return request;
    }

    private static SubmitOperations operations() {
        DeviceOperation operation = new DeviceOperation();
        operation.operationId = "o1";
        operation.component = "ORDER";
        operation.entityKey = "17";
        operation.name = "update";
        operation.body = "{\"a\":1}".getBytes(StandardCharsets.UTF_8);
        operation.submittedAtMs = CREATED;
        SubmitOperations frame = new SubmitOperations();
        frame.number = 1;
        frame.bindNumber = 1;
        frame.operations.add(operation);
        return frame;
    }

    private static OperationsTaken taken() {
        OperationsTaken taken = new OperationsTaken();
        taken.number = 1;
        return taken;
    }

    private static KeepParameters keeping() {
        Parameter parameter = new Parameter();
        parameter.bizType = "UCHAT";
        parameter.name = "max";
        parameter.value = "3";
        KeepParameters frame = new KeepParameters();
        frame.number = 1;
        frame.bindNumber = 1;
        frame.parameters.add(parameter);
        return frame;
    }

    private static final Body[] SAMPLES = {
        connect(), connected(), ping(), push(), storedAck(), report(), question(), conversations(), signedConnect(),
        operations(), taken(), keeping(),
    };

    private static List<Body> decoded(InputStream in) throws IOException, FrameException {
        FrameDecoder decoder = new FrameDecoder(in);
        List<Body> bodies = new ArrayList<>();
        try {
            while (true) bodies.add(decoder.next());
        } catch (EOFException end) {
            return bodies;
        }
    }

    private static List<Body> decoded(String hex) throws IOException, FrameException {
        return decoded(new ByteArrayInputStream(ProtocolText.bytes(hex)));
    }

    @Test
    void theExamplesOfTheTextHoldToTheByte() throws Exception {
        List<byte[]> examples = ProtocolText.examples();
        assertEquals(SAMPLES.length, examples.size());
        for (int index = 0; index < SAMPLES.length; index++) {
            String name = SAMPLES[index].getClass().getSimpleName();
            assertArrayEquals(examples.get(index), SAMPLES[index].frame(), name + " is encoded");
            List<Body> read = decoded(new ByteArrayInputStream(examples.get(index)));
            assertEquals(1, read.size(), name);
            assertEquals(SAMPLES[index].getClass(), read.get(0).getClass());
            assertArrayEquals(examples.get(index), read.get(0).frame(), name + " is decoded and encoded again");
        }
    }

    @Test
    void theSignedPartsAreThoseOfTheText() {
        assertArrayEquals(ProtocolText.signedParts(), ConnectSigner.signedParts(signedConnect()));
    }

    @Test
    void everyFieldOfAConnectIsSigned() {
        List<Consumer<Connect>> changes = new ArrayList<>();
        changes.add(it -> it.protocolVersion = 2);
        changes.add(it -> it.instanceId = "x");
        changes.add(it -> it.deviceId = "x");
        changes.add(it -> it.storeId = "x");
        changes.add(it -> it.osName = "x");
        changes.add(it -> it.osVersion = "x");
        changes.add(it -> it.appVersion = "x");
        changes.add(it -> it.sdkVersion = "x");
        changes.add(it -> it.background = true);
        changes.add(it -> it.syncPoints.add(new SyncPoint()));
        changes.add(it -> it.bind = null);
        changes.add(it -> it.bind.bindNumber = 2);
        changes.add(it -> it.bind.userId = "x");
        changes.add(it -> it.bind.sessionId = "y");
        changes.add(it -> it.bind.syncPoints.clear());
        changes.add(it -> it.bind.requestedByApp = true);
        changes.add(it -> it.bind.ownershipEpoch = 3);
        changes.add(it -> it.simple = true);
        changes.add(it -> it.suspended.add("x"));
        changes.add(it -> it.deviceSecret = counted(0, 32));
        changes.add(it -> it.connectionNumber = 1);
        changes.add(it -> it.pushToken = new PushToken());
        changes.add(it -> it.parameters.add(new Parameter()));
        changes.add(it -> it.signature.keyId = "x");
        changes.add(it -> it.signature.timestampMs = 1);
        changes.add(it -> it.signature.nonce = counted(1, 16));
        Set<String> texts = new HashSet<>();
        texts.add(Base64.getEncoder().encodeToString(ConnectSigner.signedParts(signedConnect())));
        for (Consumer<Connect> change : changes) {
            Connect changed = signedConnect();
            change.accept(changed);
            texts.add(Base64.getEncoder().encodeToString(ConnectSigner.signedParts(changed)));
        }
        assertEquals(1 + changes.size(), texts.size());
    }

    @Test
    void everySplitOfTheStreamGivesTheSameFrames() throws Exception {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        for (Body body : SAMPLES) stream.write(body.frame());
        stream.write(new byte[4]);
        for (Body body : SAMPLES) stream.write(body.frame());
        byte[] bytes = stream.toByteArray();
        for (int cut = 0; cut <= bytes.length; cut++) {
            int first = cut;
            // A stream that returns fewer bytes than were asked for, as a socket does.
            InputStream pieces = new ByteArrayInputStream(bytes) {
                @Override
                public synchronized int read(byte[] target, int offset, int length) {
                    int limit = pos < first ? first - pos : length;
                    return super.read(target, offset, Math.min(length, Math.max(1, limit)));
                }
            };
            List<Body> bodies = decoded(pieces);
            assertEquals(2 * SAMPLES.length + 1, bodies.size(), "cut at " + cut);
            assertNull(bodies.get(SAMPLES.length));
        }
        assertEquals(2 * SAMPLES.length, decoded(new ByteArrayInputStream(bytes, 0, bytes.length - 1)).size());
    }

    @Test
    void integersAreExactUpToTheirLastBit() throws Exception {
        for (long id : new long[] {1, 127, 128, 1L << 31, 1L << 32, (1L << 53) - 1, Long.MAX_VALUE}) {
            SyncPoint point = new SyncPoint();
            point.oplogId = id;
            assertEquals(id, SyncPoint.read(new WireReader(point.encoded())).oplogId);
        }
        Ping ping = new Ping();
        ping.number = -1;
        assertEquals(-1, Ping.read(new WireReader(ping.encoded())).number);
        Close close = new Close();
        close.code = 0xffff_ffffL;
        assertEquals(0xffff_ffffL, Close.read(new WireReader(close.encoded())).code);
        // Of a larger value in a 32-bit field, the low 32 bits count.
        assertEquals(1, Close.read(new WireReader(ProtocolText.bytes("08 81 80 80 80 10"))).code);
    }

    @Test
    void repeatedIntegersAreSentPackedAndAcceptedUnpackedToo() throws Exception {
        StoredAck ack = new StoredAck();
        ack.rereads.add(1);
        ack.rereads.add(300);
        assertArrayEquals(ProtocolText.bytes("12 03 01 ac 02"), ack.encoded());
        StoredAck unpacked = StoredAck.read(new WireReader(ProtocolText.bytes("10 01 10 ac 02")));
        assertArrayEquals(new long[] {1, 300}, unpacked.rereads.toArray());
    }

    @Test
    void theFieldsOfConversationsHaveTheirNumbers() throws Exception {
        Entry entry = new Entry();
        entry.conversation = "c";
        assertArrayEquals(ProtocolText.bytes("4a 01 63"), entry.encoded());
        HistoryRequest history = new HistoryRequest();
        history.conversation = "c";
        assertArrayEquals(ProtocolText.bytes("42 01 63"), history.encoded());
        SummaryRequest request = new SummaryRequest();
        request.conversationsOf = "UCHAT";
        request.afterConversation = "c";
        assertArrayEquals(ProtocolText.bytes("2a 05 5543484154 32 01 63"), request.encoded());
        SummaryPage page = SummaryPage.read(new WireReader(ProtocolText.bytes("22 03 3a 01 63 28 01 32 01 64")));
        assertEquals("c", page.channels.get(0).conversation);
        assertEquals("d", page.nextConversation);
    }

    @Test
    void defaultsAreNotSentTheLastOfAFieldCountsAndUnknownFieldsAreIgnored() throws Exception {
        assertEquals(0, new Foreground().encoded().length);
        assertEquals(2, Ping.read(new WireReader(ProtocolText.bytes("08 01 08 02"))).number);
        String unknown = "98 06 01 a2 06 01 ff a9 06 0102030405060708 ad 06 01020304 08 07";
        assertEquals(7, Ping.read(new WireReader(ProtocolText.bytes(unknown))).number);
        // A known number with another wire type is skipped.
        assertEquals(0, Ping.read(new WireReader(ProtocolText.bytes("0a 01 05"))).number);
        assertNull(decoded("00000004 9a06 01 00").get(0));
        assertTrue(decoded(hexOf(new CaughtUp().frame())).get(0) instanceof CaughtUp);
    }

    private static String hexOf(byte[] bytes) {
        StringBuilder hex = new StringBuilder();
        for (byte one : bytes) hex.append(String.format("%02x", one));
        return hex.toString();
    }

    @Test
    void invalidBytesEndTheStream() {
        String[] broken = {
            "00 10 00 01", "ff ff ff ff", "00 00 00 01 ff", "00 00 00 02 62 05", "00 00 00 03 62 01 88",
            "00 00 00 0d 62 0b 08 ff ff ff ff ff ff ff ff ff ff", "00 00 00 01 63", "00 00 00 02 02 00",
            "00 00 00 02 67 00", "00 00 00 06 72 04 12 02 c3 28", "00 00 00 05 0a ff ff ff ff",
        };
        for (String hex : broken) assertThrows(FrameException.class, () -> decoded(hex), hex);
    }

    @Test
    void deepNestingIsRefusedInsteadOfExhaustingTheStack() {
        byte[] message = new byte[0];
        for (int depth = 0; depth < 2_000; depth++) {
            ByteArrayOutputStream outer = new ByteArrayOutputStream();
            outer.write(0x32);
            for (int rest = message.length; ; rest >>>= 7) {
                outer.write(rest < 128 ? rest : rest & 0x7f | 0x80);
                if (rest < 128) break;
            }
            outer.write(message, 0, message.length);
            message = outer.toByteArray();
        }
        byte[] nested = message;
        assertThrows(FrameException.class, () -> DeviceOperation.read(new WireReader(nested)));
    }

    @Test
    void randomBytesAreDecodedOrRefused() throws Exception {
        for (int seed = 0; seed < 3_000; seed++) {
            Random random = new Random(seed);
            byte[] frame = new byte[4 + random.nextInt(200)];
            random.nextBytes(frame);
            frame[0] = 0;
            frame[1] = 0;
            frame[2] = 0;
            frame[3] = (byte) (frame.length - 4);
            try {
                assertEquals(1, decoded(new ByteArrayInputStream(frame)).size(), "seed " + seed);
            } catch (FrameException refused) {
                assertTrue(refused.getMessage().length() > 10, "seed " + seed);
            }
        }
    }
}
