package org.mobilesync.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncAppKey;
import org.mobilesync.tests.PlayedGateway;

/** The backend client against a played API. */
class BackendClientTests {
    private static final String SECRET = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    private static final String STORED = PlayedApi.result(
        "{'success':true,'msg':'NOT_ONLINE','retryable':false,'oplogId':7,'requestId':'9f86d081884c7d65'}");
    private static final String REPEATED = PlayedApi.result(
        "{'success':true,'msg':'DUPLICATED_BIZ_ID','retryable':false,'oplogId':7,'requestId':'r'}");
    private static final String UNKNOWN = PlayedApi.result(
        "{'success':false,'msg':'SYSTEM_ERROR','retryable':true,'detail':'Repeat the call.','requestId':'r'}");

    private final List<Long> pauses = new ArrayList<>();
    private PlayedApi api;

    @AfterEach
    void end() throws Exception {
        if (api != null) api.close();
    }

    private BackendClient.Builder settings(String... answers) throws Exception {
        api = PlayedApi.of(answers);
        return BackendClient.builder(api.address(), "demo_app");
    }

    private BackendClient client(String... answers) throws Exception {
        return settings(answers).build(pauses::add);
    }

    private static Push push(String thirdMsgId) {
        return Push.to("UCHAT", "u1", thirdMsgId).payload("hello").build();
    }

    private static String refusal(int status, String code, boolean isRetryable, String... headers) {
        return PlayedApi.response(status, ("{'success':false,'msg':'" + code + "','retryable':" + isRetryable
            + ",'attempted':false,'detail':'The reason.','requestId':'9f86d081884c7d65'}").replace('\'', '"'), headers);
    }

    private static BackendException failure(Runnable call) {
        return assertThrows(BackendException.class, call::run);
    }

    // Requests and results.

    @Test
    void aPushHasEveryMember() throws Exception {
        Push push = Push.to("UCHAT", "u1", "m1").payload("a \"quote\" and é").operatingSystem("Android")
            .minimumAppVersion("1.2").maximumAppVersion("2").validUntil(1_795_250_096_000L).attribute("region", "north")
            .attribute("level", 3).attribute("urgent", true).conversation("order 17").build();
        PushResult result = client(STORED).push(push);
        assertTrue(result.isAccepted());
        assertEquals("NOT_ONLINE 7", result.code() + " " + result.oplogId());
        PlayedApi.Request request = api.requests().get(0);
        assertEquals("POST /webapi/sync/single?instanceId=demo_app HTTP/1.1", request.line);
        assertEquals("application/json", request.headers.get("Content-Type"));
        assertEquals("{'bizType':'UCHAT','linkToken':'u1','thirdMsgId':'m1','payload':'a \\'quote\\' and é',"
            + "'osType':'Android','appMinVersion':'1.2','appMaxVersion':'2','validTimeEnd':1795250096000,"
            + "'conversation':'order 17','attributes':{'region':'north','level':3,'urgent':true}}",
            request.body.replace('"', '\''));
    }

    @Test
    void aGlobalPushAndBytesHaveTheirPathAndMember() throws Exception {
        client(STORED).push(Push.toAll("NEWS", "n1").binaryPayload(new byte[] {1, 2, 3}).build());
        assertEquals("POST /webapi/sync/global?instanceId=demo_app HTTP/1.1", api.requests().get(0).line);
        assertEquals("{\"bizType\":\"NEWS\",\"thirdMsgId\":\"n1\",\"binaryPayload\":\"AQID\"}", api.bodies().get(0));
    }

    @Test
    void aRecallNamesThePushAndReturnsItsOplog() throws Exception {
        assertEquals(7, client(STORED).recall("UCHAT", "u1", "m1"));
        assertEquals("POST /webapi/sync/recall?instanceId=demo_app HTTP/1.1", api.requests().get(0).line);
        assertEquals("{\"bizType\":\"UCHAT\",\"linkToken\":\"u1\",\"thirdMsgId\":\"m1\"}", api.bodies().get(0));
    }

    @Test
    void aTraceIsReadAndItsQueryIsEncoded() throws Exception {
        PushTrace trace = client(PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':false,'oplogId':1,"
            + "'acceptedAt':1795246496000,'validUntil':1797838496000,'state':'DELIVERED','detail':'Confirmed.',"
            + "'receivers':[{'deviceId':'d1','state':'DELIVERED','detail':'Confirmed.','connected':true,'attempts':2,"
            + "'handedOutAt':3,'confirmedAt':4}],'counts':[{'state':'STORED','count':5,'detail':'x'}]}"))
            .trace("UCHAT", "u ä&=+", "m1");
        assertEquals("GET /webapi/sync/trace?bizType=UCHAT&instanceId=demo_app&linkToken=u%20%C3%A4%26%3D%2B"
            + "&thirdMsgId=m1 HTTP/1.1", api.requests().get(0).line);
        assertEquals("DELIVERED Confirmed. 1", trace.state() + " " + trace.detail() + " " + trace.oplogId());
        assertEquals(1_797_838_496_000L, trace.validUntilMs());
        assertEquals(0, trace.recalledAtMs());
        PushTrace.Receiver receiver = trace.receivers().get(0);
        assertEquals("d1 DELIVERED 2 3 4", receiver.deviceId() + " " + receiver.state() + " " + receiver.attempts()
            + " " + receiver.handedOutAtMs() + " " + receiver.confirmedAtMs());
        assertTrue(receiver.isConnected());
        assertEquals(Collections.singletonMap("STORED", 5L), trace.counts());
    }

    // Signatures.

    @Test
    void aSignatureIsThatOfTheDescriptionsExample() {
        ApiCall call = ApiCall.post("single", "demo_app",
            "{\"bizType\":\"UCHAT\",\"linkToken\":\"u1\",\"thirdMsgId\":\"m1\",\"payload\":\"hello\"}", "example");
        assertEquals("f0dc6d4d2a8b6423008b1d187306bffcef4899e4d35bd22ee133c6209228abc0",
            new RequestSigner(new SyncAppKey("k0011223344556677", SECRET))
                .headers(call, "1700000000000", "000102030405060708090a0b0c0d0e0f").get("X-MSS-Signature"));
    }

    @Test
    void everyAttemptHasANonceOfItsOwnAndTheSameThirdMsgId() throws Exception {
        BackendClient client = settings(UNKNOWN, STORED).key("k1", SECRET).build(pauses::add);
        client.push(push("m1"));
        assertEquals(2, api.requests().size());
        PlayedApi.Request first = api.requests().get(0);
        PlayedApi.Request second = api.requests().get(1);
        assertEquals("k1", second.headers.get("X-MSS-Key"));
        assertNotEquals(first.headers.get("X-MSS-Nonce"), second.headers.get("X-MSS-Nonce"));
        assertEquals(first.body, second.body);
    }

    /** The platform's HTTP client sends a request again by itself, nonce and all, when its answer is lost. */
    @Test
    void aRequestThatThePlatformSentTwiceIsSignedAnew() throws Exception {
        String replay = refusal(401, "UNAUTHORIZED", false).replace("The reason.", "REPLAY here");
        BackendClient client = settings(replay, REPEATED).key("k1", SECRET).build(pauses::add);
        assertEquals("DUPLICATED_BIZ_ID", client.push(push("m1")).code());
        assertEquals(2, api.requests().size());
    }

    // Repeats.

    @Test
    void aLostAnswerIsRepeatedWithTheSamePush() throws Exception {
        PushResult result = client(PlayedApi.CUT, PlayedApi.CUT, PlayedApi.CUT, REPEATED).push(push("m1"));
        assertTrue(result.isAccepted());
        assertEquals("DUPLICATED_BIZ_ID", result.code());
        assertEquals(4, api.requests().size());
        assertEquals(1, api.bodies().stream().distinct().count());
    }

    @Test
    void anAnswerThatIsCutOffIsNoAnswer() throws Exception {
        String cutOff = STORED.substring(0, STORED.length() - 10) + PlayedApi.CUT;
        assertEquals("DUPLICATED_BIZ_ID", client(cutOff, REPEATED).push(push("m1")).code());
        assertEquals(2, api.requests().size());
    }

    @Test
    void withoutAnAnswerTheOutcomeIsUnknownAndTheErrorSaysHowToGoOn() throws Exception {
        String[] cuts = new String[40];
        Arrays.fill(cuts, PlayedApi.CUT);
        BackendClient client = client(cuts);
        BackendException error = failure(() -> client.push(push("m1")));
        assertEquals(BackendException.Code.UNKNOWN_OUTCOME, error.code());
        assertTrue(error.isRetryable());
        assertNull(error.apiCode());
        assertTrue(error.getMessage().contains("the push m1 of UCHAT to u1 had no success in 6 attempts: no answer"),
            error.getMessage());
        assertTrue(error.getMessage().contains("with the same thirdMsgId"), error.getMessage());
        assertEquals(5, pauses.size());
    }

    @Test
    void anAttemptThatMayHaveStoredThePushIsNotForgottenBehindARefusal() throws Exception {
        String[] refusals = {UNKNOWN, refusal(503, "UNAVAILABLE", true), refusal(401, "UNAUTHORIZED", false)};
        BackendClient client = client(refusals);
        BackendException error = failure(() -> client.push(push("m1")));
        assertEquals(BackendException.Code.UNKNOWN_OUTCOME, error.code());
        assertEquals("UNAUTHORIZED", error.apiCode());
        assertFalse(error.isRetryable());
    }

    @Test
    void anAttemptThatMayHaveStoredThePushIsNotForgottenBehindARefusedCertificate() {
        IOException lost = new IOException("lost");
        ApiCall call = ApiCall.post("single", "demo_app", "{}", "the push m1");
        Retries retries = new Retries(4, pauses::add);
        ApiAnswer refused = ApiAnswer.refusedCertificate(lost, "https://push.example.com");
        assertFalse(retries.next(refused, call));
        assertEquals(BackendException.Code.CERTIFICATE,
            BackendException.of("the push m1", refused, 1, retries.isOutcomeUnknown()).code());
        assertTrue(retries.next(ApiAnswer.none(lost), call));
        assertFalse(retries.next(refused, call));
        BackendException error = BackendException.of("the push m1", refused, 3, retries.isOutcomeUnknown());
        assertEquals(BackendException.Code.UNKNOWN_OUTCOME, error.code());
        assertTrue(error.getMessage().contains("certificate of https://push.example.com"), error.getMessage());
    }

    @Test
    void pausesGrowAndAreBounded() throws Exception {
        String[] answers = new String[8];
        Arrays.fill(answers, UNKNOWN);
        BackendClient client = settings(answers).attempts(8).build(pauses::add);
        failure(() -> client.push(push("m1")));
        long[] whole = {500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000};
        assertEquals(whole.length, pauses.size());
        for (int index = 0; index < whole.length; index++) {
            long pause = pauses.get(index);
            assertTrue(pause >= whole[index] / 2 && pause <= whole[index], index + ": " + pause);
        }
    }

    @Test
    void aPauseThatTheApiNamesIsKeptAndALongOneIsAnError() throws Exception {
        BackendClient client = client(refusal(503, "UNAVAILABLE", true, "Retry-After: 3"), STORED,
            refusal(429, "RATE_LIMITED", true, "Retry-After: 3600"));
        client.push(push("m1"));
        assertEquals(Collections.singletonList(3_000L), pauses);
        BackendException error = failure(() -> client.push(push("m2")));
        assertEquals(BackendException.Code.OVER_LIMIT, error.code());
        assertEquals(3_600, error.retryAfterSeconds());
        assertTrue(error.isRetryable());
        assertEquals(1, pauses.size());
    }

    @Test
    void aProxyThatLostTheAnswerIsNoAnswer() throws Exception {
        assertTrue(client(PlayedApi.response(502, "<html>"), STORED).push(push("m1")).isAccepted());
    }

    @Test
    void anInterruptEndsTheWait() throws Exception {
        BackendClient client = settings(UNKNOWN).build(ms -> {
            throw new InterruptedException();
        });
        BackendException error = failure(() -> client.push(push("m1")));
        assertEquals(BackendException.Code.INTERRUPTED, error.code());
        assertTrue(Thread.interrupted());
    }

    // Batches.

    @Test
    void onlyTheRetryableItemsOfABatchAreRepeated() throws Exception {
        List<PushResult> results = client(
            PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':true,'results':["
                + "{'success':true,'msg':'SUCCESS','retryable':false,'oplogId':1},"
                + "{'success':false,'msg':'UNAVAILABLE','retryable':true,'attempted':false},"
                + "{'success':false,'msg':'BIZ_NOT_ONLINE','retryable':false,'detail':'Unknown.'},"
                + "{'success':false,'msg':'SYSTEM_ERROR','retryable':true}]}"),
            PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':false,'results':["
                + "{'success':true,'msg':'NOT_ONLINE','retryable':false,'oplogId':2},"
                + "{'success':true,'msg':'DUPLICATED_BIZ_ID','retryable':false,'oplogId':4}]}"))
            .push(Arrays.asList(push("m1"), push("m2"), push("m3"), push("m4")));
        assertTrue(api.bodies().get(1).matches("\\{\"items\":\\[\\{.*m2.*},\\{.*m4.*}]}"), api.bodies().get(1));
        assertFalse(api.bodies().get(1).contains("m3"));
        StringBuilder codes = new StringBuilder();
        for (PushResult result : results) codes.append(result.code()).append(' ').append(result.oplogId()).append(' ');
        assertEquals("SUCCESS 1 NOT_ONLINE 2 BIZ_NOT_ONLINE 0 DUPLICATED_BIZ_ID 4 ", codes.toString());
        assertEquals(BackendException.Code.UNKNOWN_SYNC_ID, results.get(2).error().code());
        assertTrue(results.get(2).error().getMessage().contains("the push m3"), results.get(2).detail());
    }

    @Test
    void aBatchWhoseRepeatIsRefusedKeepsTheFirstResults() throws Exception {
        List<PushResult> results = client(
            PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':true,'results':["
                + "{'success':true,'msg':'SUCCESS','retryable':false,'oplogId':1},"
                + "{'success':false,'msg':'UNAVAILABLE','retryable':true,'attempted':false}]}"),
            refusal(401, "UNAUTHORIZED", false)).push(Arrays.asList(push("m1"), push("m2")));
        assertTrue(results.get(0).isAccepted());
        assertEquals(BackendException.Code.UNAUTHORIZED, results.get(1).error().code());
    }

    @Test
    void aBatchWhoseRepeatIsRefusedKeepsTheUnknownOutcomeOfEachPush() throws Exception {
        List<PushResult> results = client(
            PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':true,'results':["
                + "{'success':false,'msg':'UNAVAILABLE','retryable':true,'attempted':false},"
                + "{'success':false,'msg':'SYSTEM_ERROR','retryable':true}]}"),
            refusal(401, "UNAUTHORIZED", false)).push(Arrays.asList(push("m1"), push("m2")));
        assertEquals(BackendException.Code.UNAUTHORIZED, results.get(0).error().code());
        assertEquals(BackendException.Code.UNKNOWN_OUTCOME, results.get(1).error().code());
    }

    @Test
    void anInterruptKeepsTheResultsOfABatch() throws Exception {
        BackendClient client = settings(
            PlayedApi.result("{'success':true,'msg':'SUCCESS','retryable':true,'results':["
                + "{'success':true,'msg':'SUCCESS','retryable':false,'oplogId':1},"
                + "{'success':false,'msg':'SYSTEM_ERROR','retryable':true}]}"), UNKNOWN)
            .build(ms -> {
                throw new InterruptedException();
            });
        List<PushResult> results = client.push(Arrays.asList(push("m1"), push("m2")));
        assertTrue(Thread.interrupted());
        assertEquals(1, results.get(0).oplogId());
        assertEquals(BackendException.Code.UNKNOWN_OUTCOME, results.get(1).error().code());
        BackendException error = failure(() -> client.push(Arrays.asList(push("m1"), push("m2"))));
        assertTrue(Thread.interrupted());
        assertEquals(BackendException.Code.INTERRUPTED, error.code());
    }

    @Test
    void aBatchWithoutAnyResultIsAnError() throws Exception {
        BackendClient client = client(refusal(401, "UNAUTHORIZED", false));
        BackendException error = failure(() -> client.push(Arrays.asList(push("m1"), push("m2"))));
        assertEquals(BackendException.Code.UNAUTHORIZED, error.code());
        assertTrue(error.getMessage().contains("the batch of 2 pushes"), error.getMessage());
    }

    // Errors.

    @Test
    void everyRefusalHasACodeItsReasonAndARemedyAndIsNotRepeated() throws Exception {
        Object[][] refusals = {
            {200, "PAYLOAD_LONG", BackendException.Code.REFUSED, "correct the call"},
            {200, "BIZ_NOT_ONLINE", BackendException.Code.UNKNOWN_SYNC_ID, "operator"},
            {200, "NOT_SUPPORT_GLOBAL", BackendException.Code.WRONG_SCOPE, "Push.toAll"},
            {401, "UNAUTHORIZED", BackendException.Code.UNAUTHORIZED, "secret"},
            {403, "FORBIDDEN", BackendException.Code.FORBIDDEN, "key of this instance"},
            {413, "TOO_LARGE", BackendException.Code.TOO_LARGE, "less"},
            {400, "BAD_REQUEST", BackendException.Code.REFUSED, "correct the call"},
        };
        for (Object[] one : refusals) {
            BackendClient client = client(refusal((Integer) one[0], (String) one[1], false));
            BackendException error = failure(() -> client.push(push("m1")));
            assertEquals(one[2], error.code());
            assertEquals(one[1], error.apiCode());
            assertEquals("9f86d081884c7d65", error.requestId());
            String message = error.getMessage();
            assertTrue(message.contains("The reason.") && message.contains((String) one[3]), message);
            assertEquals(1, api.requests().size());
            api.close();
        }
        assertEquals(0, pauses.size());
    }

    @Test
    void aServerThatIsNotTheApiIsAnErrorAndARedirectIsNotFollowed() throws Exception {
        String[] answers = {
            PlayedApi.response(200, "<html>"), PlayedApi.response(404, "<html>"), PlayedApi.result("{'msg':'SUCCESS'}"),
            PlayedApi.response(302, "", "Location: http://127.0.0.1:1/"),
        };
        for (String answer : answers) {
            BackendClient client = client(answer);
            BackendException error = failure(() -> client.push(push("m1")));
            assertEquals(BackendException.Code.UNEXPECTED_ANSWER, error.code());
            assertTrue(error.getMessage().contains("check the address"), error.getMessage());
            assertEquals(1, api.requests().size());
            api.close();
        }
    }

    @Test
    void aPrivateAuthorityIsTrustedWhenItIsGivenAndOtherwiseRefused() throws Exception {
        PlayedGateway.Keys keys = PlayedGateway.Keys.RIGHT;
        api = PlayedApi.secured(keys.context().getServerSocketFactory(), STORED);
        BackendClient stranger = BackendClient.builder(api.address(), "demo_app").build(pauses::add);
        BackendException error = failure(() -> stranger.push(push("m1")));
        assertEquals(BackendException.Code.CERTIFICATE, error.code());
        assertTrue(error.getMessage().contains("Builder.sslContext"), error.getMessage());
        assertEquals(0, pauses.size());
        KeyStore authorities = KeyStore.getInstance(KeyStore.getDefaultType());
        authorities.load(null, null);
        try (InputStream in = Files.newInputStream(keys.authority())) {
            authorities.setCertificateEntry("api", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(authorities);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        BackendClient client = BackendClient.builder(api.address() + "/", "demo_app").sslContext(context).build();
        assertTrue(client.push(push("m1")).isAccepted());
    }

    @Test
    void everyMisuseIsAnErrorBeforeAnythingIsSent() throws Exception {
        misuse("address", () -> BackendClient.builder("push.example.com", "demo_app").build());
        misuse("address", () -> BackendClient.builder("https://push.example.com/webapi", "demo_app").build());
        misuse("instanceId", () -> BackendClient.builder("https://push.example.com", "").build());
        misuse("attempts", () -> BackendClient.builder("https://push.example.com", "a").attempts(0).build());
        misuse("timeoutMs", () -> BackendClient.builder("https://push.example.com", "a").timeoutMs(0).build());
        misuse("Base64", () -> BackendClient.builder("https://push.example.com", "a").key("k", "short"));
        misuse("linkToken", () -> Push.to("UCHAT", "", "m1"));
        misuse("thirdMsgId", () -> Push.to("UCHAT", "u1", null));
        misuse("no data", () -> Push.to("UCHAT", "u1", "m1").build());
        misuse("conversation", () -> Push.to("UCHAT", "u1", "m1").conversation(""));
        misuse("finite Number", () -> Push.to("UCHAT", "u1", "m1").attribute("a", Double.NaN));
        BackendClient client = client();
        misuse("thirdMsgId", () -> client.recall("UCHAT", "u1", null));
        misuse("bizType", () -> client.trace("", null, "m1"));
        misuse("1 to 500", () -> client.push(Collections.<Push>emptyList()));
        misuse("push it alone", () -> client.push(
            Collections.singletonList(Push.toAll("NEWS", "n1").payload("x").build())));
    }

    private static void misuse(String remedy, Runnable call) {
        BackendException error = failure(call);
        assertEquals(BackendException.Code.INVALID_ARGUMENT, error.code());
        assertTrue(error.getMessage().contains(remedy), error.getMessage());
        assertFalse(error.isRetryable());
    }
}
