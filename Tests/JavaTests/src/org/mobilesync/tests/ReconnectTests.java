package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.mobilesync.internal.connection.CloseCodes;
import org.mobilesync.internal.connection.ConnectionEnd;
import org.mobilesync.internal.connection.GatewayAddress;
import org.mobilesync.internal.connection.Heartbeat;
import org.mobilesync.internal.connection.ReconnectPolicy;

/** Back-off, close codes and heartbeat: pure rules. */
class ReconnectTests {
    private static final double MOST = 0.999_999;

    private static long delay(ReconnectPolicy policy, long nowMs) {
        return policy.next(ConnectionEnd.lost("test"), -1, nowMs, MOST).delayMs();
    }

    @Test
    void theLimitDoublesUpTo16SecondsInAShortOutage() {
        ReconnectPolicy policy = new ReconnectPolicy();
        for (long limit : new long[] {1_000, 2_000, 4_000, 8_000, 16_000, 16_000}) {
            assertTrue(Math.abs(delay(policy, 0) - limit) <= 1, "limit " + limit);
        }
    }

    @Test
    void inALongOutageTheLimitIsAnEighthOfItUpTo300Seconds() {
        ReconnectPolicy policy = new ReconnectPolicy();
        for (int failure = 0; failure < 10; failure++) delay(policy, 0);
        assertTrue(Math.abs(delay(policy, 1_600_000) - 200_000) <= 1);
        assertTrue(Math.abs(delay(policy, 10_000_000) - 300_000) <= 1);
    }

    @Test
    void noWaitIsBelow50Milliseconds() {
        assertEquals(50, new ReconnectPolicy().next(ConnectionEnd.silent(), -1, 0, 0).delayMs());
    }

    @Test
    void aConnectionOf5SecondsResetsTheLimit() {
        ReconnectPolicy policy = new ReconnectPolicy();
        for (int failure = 0; failure < 6; failure++) delay(policy, 0);
        assertTrue(policy.next(ConnectionEnd.lost("test"), 4_999, 0, MOST).delayMs() > 10_000);
        assertTrue(policy.next(ConnectionEnd.lost("test"), 5_000, 0, MOST).delayMs() <= 1_000);
    }

    @Test
    void theGatewaysDemandIsAddedAndNoWaitIsAboveAnHour() {
        ReconnectPolicy.Decision later =
            new ReconnectPolicy().next(ConnectionEnd.closed(2000, "", 1_500, ""), -1, 0, MOST);
        assertEquals(1_500, later.atLeastMs());
        assertTrue(later.delayMs() > 0);
        ReconnectPolicy.Decision longest =
            new ReconnectPolicy().next(ConnectionEnd.closed(2000, "", Long.MAX_VALUE, ""), -1, 0, MOST);
        assertEquals(3_600_000, longest.atLeastMs() + longest.delayMs());
    }

    @Test
    void theThousandsOfACloseCodeDecide() {
        assertEquals(CloseCodes.Reaction.RECONNECT, CloseCodes.reaction(1_234));
        assertEquals(CloseCodes.Reaction.RECONNECT_LATER, CloseCodes.reaction(2_999));
        assertEquals(CloseCodes.Reaction.RECONNECT_ELSEWHERE, CloseCodes.reaction(3_000));
        assertEquals(CloseCodes.Reaction.SIGN_IN_AGAIN, CloseCodes.reaction(4_999));
        assertEquals(CloseCodes.Reaction.STAY_AWAY, CloseCodes.reaction(5_002));
        for (long code : new long[] {0, 999, 6_000, 0xffff_ffffL}) {
            assertEquals(CloseCodes.Reaction.RECONNECT_LATER, CloseCodes.reaction(code));
        }
        ReconnectPolicy.Decision anew =
            new ReconnectPolicy().next(ConnectionEnd.closed(5004, "", 0, ""), -1, 0, MOST);
        assertEquals(CloseCodes.Reaction.RECONNECT, anew.reaction());
    }

    @Test
    void addressesOfACloseAreHostAndPort() {
        assertEquals("gw:7443", GatewayAddress.parse("gw:7443").toString());
        assertEquals("::1", GatewayAddress.parse("[::1]:80").host());
        for (String text : new String[] {"", "gw", ":80", "gw:0", "gw:65536", "gw:x"}) {
            assertNull(GatewayAddress.parse(text), text);
        }
    }

    @Test
    void theHeartbeatGrowsAfterThreeAnswersAndShrinksAfterTwoDeadConnections() {
        Heartbeat heartbeat = new Heartbeat(60, 300, Heartbeat.Learned.NOTHING);
        for (int answer = 0; answer < 3; answer++) heartbeat.answered(60_000);
        assertEquals(90, heartbeat.interval(false));
        assertEquals(60, heartbeat.interval(true));
        heartbeat.failed(90_000);
        assertEquals(90, heartbeat.interval(false));
        Heartbeat next = new Heartbeat(60, 300, heartbeat.learned());
        assertEquals(60, next.interval(false));
        for (int answer = 0; answer < 3; answer++) next.answered(60_000);
        next.failed(90_000);
        assertTrue(next.interval(false) < 90);
        for (int answer = 0; answer < 30; answer++) next.answered(next.interval(false) * 1_000);
        assertTrue(next.interval(false) < 90, "an interval that failed twice is not tried again");
    }

    @Test
    void anAnswerAfterTrafficSaysNothingAboutTheInterval() {
        Heartbeat heartbeat = new Heartbeat(60, 300, Heartbeat.Learned.NOTHING);
        for (int answer = 0; answer < 9; answer++) heartbeat.answered(10_000);
        assertEquals(60, heartbeat.interval(false));
    }
}
