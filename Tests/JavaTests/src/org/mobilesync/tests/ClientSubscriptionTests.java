package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.SyncParameterValue;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.ConfirmRecorded;
import org.mobilesync.internal.wire.ConfirmReport;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.KeepParameters;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.ParametersKept;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.Subscriptions;
import org.mobilesync.internal.wire.UserParameters;

/** Suspension, parameters and recovery of Sync IDs, over TLS against a played gateway. */
class ClientSubscriptionTests extends PlayedClient {
    @Test
    void suspendedSyncIdsAreSentAndNamedInTheNextConnect() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.suspend("NEWS"));
        connection.find(Subscriptions.class, frame -> frame.suspended.contains("NEWS"));
        connection.cut();
        PlayedGateway.Connection again = gateway.open();
        assertEquals(Collections.singletonList("NEWS"), again.connect().suspended);
        get(client.resume("NEWS"));
        again.find(Subscriptions.class, frame -> frame.suspended.isEmpty());
    }

    @Test
    void parametersAreSentAtOnceAndInTheNextConnectAndBind() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.setParameter("NEWS", "region", SyncParameterValue.text("south"), SyncParameterKind.CLIENT));
        connection.find(Subscriptions.class, frame -> texts(frame.parameters).equals("NEWS region \"south\" "));
        get(client.setParameter("NEWS", "region", SyncParameterValue.text("west"), SyncParameterKind.SESSION));
        connection.find(Subscriptions.class, frame -> texts(frame.parameters).equals("NEWS region \"west\" "));
        assertEquals("\"west\"", get(client.parameters()).get(0).value().json());
        connection.cut();
        PlayedGateway.Connection again = gateway.open();
        assertEquals("NEWS region \"west\" ", texts(again.connect().parameters));
        // Another user has values of its own, and sign-out ends those of the session.
        client.bind("u2", "s2");
        again.find(Bind.class, bind -> bind.userId.equals("u2") && bind.parameters.isEmpty());
        client.bind("u1", "s1");
        again.find(Bind.class, bind -> texts(bind.parameters).equals("NEWS region \"south\" "));
    }

    @Test
    void aUserThatMustSignInAgainHasNoParametersOnTheConnection() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.setParameter("NEWS", "region", SyncParameterValue.text("west"), SyncParameterKind.SESSION));
        Close close = new Close();
        close.code = 4_000;
        connection.send(close);
        PlayedGateway.Connection again = gateway.next();
        assertEquals(null, again.connect().bind);
        assertEquals("", texts(again.connect().parameters));
    }

    @Test
    void aServerParameterIsPendingUntilTheServiceHasStoredIt() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.setParameter("NEWS", "max", SyncParameterValue.number(3), SyncParameterKind.SERVER));
        KeepParameters frame = connection.find(KeepParameters.class, one -> true);
        assertEquals("NEWS max 3.0 ", texts(frame.parameters));
        assertTrue(get(client.parameters()).get(0).isPending());
        ParametersKept reply = new ParametersKept();
        reply.number = frame.number;
        connection.send(reply);
        UserParameters list = new UserParameters();
        list.bindNumber = 1;
        list.parameters.addAll(frame.parameters);
        list.refusedBizTypes.add("NEWS");
        connection.send(list);
        events.find("parameterRefused NEWS");
        assertFalse(get(client.parameters()).get(0).isPending());
        get(client.setParameter("NEWS", "unknown", SyncParameterValue.flag(true), SyncParameterKind.SERVER));
        KeepParameters next = connection.find(KeepParameters.class, one -> one.number > frame.number);
        ParametersKept refusal = new ParametersKept();
        refusal.number = next.number;
        refusal.refusal = RequestRefusal.INVALID;
        refusal.reason = "no such parameter";
        connection.send(refusal);
        events.find("parameterRefused no such parameter");
        assertEquals(1, get(client.parameters()).size());
    }

    private static String texts(List<Parameter> parameters) {
        StringBuilder texts = new StringBuilder();
        for (Parameter one : parameters) {
            texts.append(one.bizType).append(' ').append(one.name).append(' ').append(one.value).append(' ');
        }
        return texts.toString();
    }

    @Test
    void aRecoveryReadsEveryPageFromTheOldestAndContinuesOnTheNextConnection() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", oplog -> {
            shown.add(oplog);
            if (!oplog.isReplay()) client.confirm(oplog);
        });
        connection.send(push(ChannelKind.USER, 0, 5));
        assertFalse(nextShown().isReplay());
        // A recovery resets confirmations, so it waits until they are recorded.
        ConfirmReport report = connection.find(ConfirmReport.class, frame -> !frame.channels.isEmpty());
        get(client.recover("UCHAT"));
        assertFalse(connection.has(HistoryRequest.class));
        ConfirmRecorded recorded = new ConfirmRecorded();
        recorded.reportId = report.reportId;
        connection.send(recorded);
        HistoryRequest first = connection.find(HistoryRequest.class, frame -> true);
        assertEquals("0 0 true", first.after + " " + first.before + " " + first.oldestFirst);
        connection.send(page(first, true, 3, 2, 3));
        assertEquals(2, nextShown().oplogId());
        assertTrue(nextShown().isReplay());
        HistoryRequest second = connection.find(HistoryRequest.class, frame -> frame.after == 3);
        assertEquals(6, second.before);
        connection.cut();
        PlayedGateway.Connection again = gateway.open();
        HistoryRequest third = again.find(HistoryRequest.class, frame -> frame.after == 3);
        again.send(refusal(third, RequestRefusal.TRY_AGAIN));
        HistoryRequest fourth =
            again.find(HistoryRequest.class, frame -> frame.requestNumber > third.requestNumber);
        again.send(page(fourth, false, 0, 5, 7));
        SyncOplog last = nextShown();
        assertEquals("5 true", last.oplogId() + " " + last.isReplay());
        // Oplog 7 came after the recovery began; its own batch brings it.
        assertEquals(null, shown.poll(100, TimeUnit.MILLISECONDS));
    }

    private static HistoryPage page(HistoryRequest request, boolean hasMore, long next, long... ids) {
        HistoryPage page = new HistoryPage();
        page.requestNumber = request.requestNumber;
        page.bindNumber = request.bindNumber;
        page.kind = ChannelKind.USER;
        page.head = 5;
        page.more = hasMore;
        page.next = next;
        for (long id : ids) page.entries.add(entry(id, "oplog " + id));
        return page;
    }

    private static HistoryPage refusal(HistoryRequest request, long refusal) {
        HistoryPage page = new HistoryPage();
        page.requestNumber = request.requestNumber;
        page.refusal = refusal;
        return page;
    }

    @Test
    void aRefusedRecoveryDoesNotDelayTheRetryOfAnother() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.recover("NEWS"));
        HistoryRequest news = connection.find(HistoryRequest.class, frame -> frame.bizType.equals("NEWS"));
        connection.send(refusal(news, RequestRefusal.NOT_ELIGIBLE));
        get(client.recover("UCHAT"));
        HistoryRequest chat = connection.find(HistoryRequest.class, frame -> frame.bizType.equals("UCHAT"));
        connection.send(refusal(chat, RequestRefusal.TRY_AGAIN));
        // The retry after 1 s begins with the refused one.
        HistoryRequest again = connection.find(
            HistoryRequest.class, frame -> frame.requestNumber > chat.requestNumber);
        connection.send(refusal(again, RequestRefusal.NOT_ELIGIBLE));
        connection.find(HistoryRequest.class,
            frame -> frame.bizType.equals("UCHAT") && frame.requestNumber > again.requestNumber);
    }

    @Test
    void aRecoveryWithoutAUserIsForTheNextOneAndARefusedOneContinuesAfterABind() throws Exception {
        get(client.recover("UCHAT"));
        client.listen("UCHAT", shown::add);
        client.connect();
        PlayedGateway.Connection connection = gateway.open();
        HistoryRequest request = connection.find(HistoryRequest.class, frame -> true);
        connection.send(refusal(request, RequestRefusal.NOT_ELIGIBLE));
        client.bind("u1", "s1");
        connection.find(Bind.class, bind -> bind.userId.equals("u1"));
        connection.acceptBind(1);
        HistoryRequest again = connection.find(HistoryRequest.class, frame -> frame.bindNumber == 1);
        connection.send(page(again, false, 0, 5));
        HistoryRequest adopted = connection.find(
            HistoryRequest.class, frame -> frame.requestNumber > again.requestNumber);
        connection.send(page(adopted, false, 0, 5));
        assertEquals("u1", nextShown().userId());
        get(client.networkChanged(true, ""));
        assertEquals(null, shown.poll(100, TimeUnit.MILLISECONDS));
    }
}
