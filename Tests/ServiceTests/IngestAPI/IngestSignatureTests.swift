import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import Synchronization
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: signed calls")
struct IngestSignatureTests {
    /// Nonces as the store counts them, and the number of requests.
    private final class Nonces: Sendable {
        private let used = Mutex<(nonces: Set<String>, claims: Int)>(([], 0))
        var claims: Int { used.withLock { $0.claims } }

        @Sendable func claim(_ nonce: [UInt8], _ keyID: String, _ expiresAt: WallTime) throws(BusError) -> Bool {
            used.withLock { used in
                used.claims += 1
                return used.nonces.insert("\(keyID) \(nonce)").inserted
            }
        }
    }

    /// The answers of one API server to these requests, each on a connection of its own.
    private func answers(
        _ requests: [String], directory: StubDirectory, submission: StubSubmission = StubSubmission(),
        claim: @escaping RequestAdmission.Claim = { _, _, _ in true }
    ) async throws -> [IngestRawAnswer] {
        let admission = RequestAdmission.stub(directory: directory, ring: IngestSigner.ring, claim: claim)
        let all = Mutex<[IngestRawAnswer]>([])
        try await IngestServerFixture.serve(submission: submission, directory: directory, admission: admission) {
            port in
            for request in requests {
                let answer = try #require(try await IngestServerFixture.exchange(port, request).first)
                all.withLock { $0.append(answer) }
            }
        }
        return all.withLock { $0 }
    }

    @Test("SEC6: where the switch is on every call must be signed, and a correct signature is admitted")
    func everyCall() async throws {
        let signer = IngestSigner()
        var calls: [IngestSigner] = []
        for path in ["single", "global", "batch", "recall", "single?dryRun=true&", "batch?dryRun=true&"] {
            var call = signer
            call.target = "/webapi/sync/\(path)" + (path.contains("?") ? "" : "?") + "instanceId=w_app"
            calls.append(call)
        }
        var trace = signer
        (trace.method, trace.target, trace.body) = ("GET", "/webapi/sync/trace?instanceId=w_app&bizType=orders", "")
        calls.append(trace)
        let submission = StubSubmission()
        let directory = signer.directory()
        let unsigned = try await answers(
            calls.map { $0.request(headers: "") }, directory: directory, submission: submission)
        #expect(unsigned.map(\.status) == calls.map { _ in 401 })
        #expect(submission.pushes.isEmpty)
        for answer in unsigned {
            #expect(answer.refusalFlaw == nil)
            #expect(answer.fields["www-authenticate"] == "MSS-Signature-V1")
        }
        let signed = try await answers(calls.map { $0.request() }, directory: directory)
        // The store of this test does not answer a dry run.
        #expect(signed.map(\.status) == [200, 200, 200, 200, 503, 200, 200])
        // The description needs no signature.
        let open = try await answers(
            ["GET /openapi.json HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"], directory: directory)
        #expect(open.map(\.status) == [200])
    }

    @Test("SEC6: any byte of method, path, query, body, timestamp, nonce, key or signature that is changed: 401")
    func flips() async throws {
        let signer = IngestSigner()
        let directory = signer.directory()
        let admission = RequestAdmission.stub(directory: directory, ring: IngestSigner.ring)
        func status(_ method: String, _ target: String, _ headers: [String], _ body: String) async -> UInt {
            let names = ["X-MSS-Key", "X-MSS-Timestamp", "X-MSS-Nonce", "X-MSS-Signature"]
            let head = HTTPRequestHead(
                version: .http1_1, method: .init(rawValue: method), uri: target,
                headers: HTTPHeaders(Array(zip(names, headers))))
            do throws(EarlyRefusal) {
                let query = RequestQuery(head)
                _ = try await admission.admit(
                    head, try admission.headers(of: head, query), query, body: Array(body.utf8))
                return 200
            } catch {
                return error.answer.status.code
            }
        }
        let right = [signer.keyID, signer.timestamp, signer.nonce, signer.signature]
        #expect(await status("POST", signer.target, right, signer.body) == 200)
        func changes(_ text: String) -> [String] {
            text.utf8.indices.map { place in
                var bytes = Array(text.utf8)
                bytes[text.utf8.distance(from: text.startIndex, to: place)] ^= 1
                return String(decoding: bytes, as: UTF8.self)
            }
        }
        for method in ["QOST", "PNST", "GET"] {
            #expect(await status(method, signer.target, right, signer.body) == 401)
        }
        for target in changes(signer.target) + [signer.target + "&a=b"] {
            #expect(await status("POST", target, right, signer.body) == 401, "\(target)")
        }
        for body in changes(signer.body) + ["", signer.body + " "] {
            #expect(await status("POST", signer.target, right, body) == 401, "\(body)")
        }
        for index in right.indices {
            for value in changes(right[index]) + [""] {
                var headers = right
                headers[index] = value
                #expect(await status("POST", signer.target, headers, signer.body) == 401, "\(headers)")
            }
        }
    }

    @Test("SEC6: an unknown key and a wrong signature have the same answer, which says nothing more")
    func sameAnswer() async throws {
        let signer = IngestSigner()
        var (unknown, wrong, device) = (signer, signer, signer)
        unknown.keyID = "k2"
        wrong.secret = RandomBytes.make(32)
        var directory = signer.directory()
        device.keyID = "d1"
        var instance = try #require(directory.instance(InstanceID("w_app")))
        instance.keys.append(device.key(purpose: .device))
        directory.add(instance)
        // A wrong signature with an old timestamp: the answer does not mention the time.
        var late = wrong
        late.timestamp = "1"
        let all = try await answers([unknown, wrong, device, late].map { $0.request() }, directory: directory)
        let texts = Set(all.map { $0.body.components(separatedBy: ",\"requestId\"")[0] })
        #expect(texts.count == 1 && texts.first?.contains("The signature is wrong, or there is no such key") == true)
        #expect(all.map(\.status) == [401, 401, 401, 401])
        #expect(Set(all.map { $0.fields.keys.sorted() }).count == 1)
    }

    @Test("SEC6: a nonce is valid once for a key, with any request")
    func replay() async throws {
        let signer = IngestSigner()
        let nonces = Nonces()
        let request = signer.request()
        let first = try await answers([request, request], directory: signer.directory(), claim: nonces.claim)
        #expect(first.map(\.status) == [200, 401])
        #expect(first[1].body.contains("REPLAY") && first[1].refusalFlaw == nil)
        // Another ingest shares only the store.
        let submission = StubSubmission()
        let second = try await answers(
            [request], directory: signer.directory(), submission: submission, claim: nonces.claim)
        #expect(second.map(\.status) == [401] && second[0].body.contains("REPLAY"))
        #expect(submission.pushes.isEmpty)
        var capitals = signer
        capitals.nonce = signer.nonce.uppercased()
        var other = IngestSigner(keyID: "k7")
        other.nonce = signer.nonce
        let third = try await answers([capitals.request()], directory: signer.directory(), claim: nonces.claim)
        #expect(third.map(\.status) == [401])
        let fourth = try await answers([other.request()], directory: other.directory(), claim: nonces.claim)
        #expect(fourth.map(\.status) == [200])
    }

    @Test("SEC6: a difference of 300 s is accepted, a millisecond more is not, and the answer has the time")
    func skew() async throws {
        let signer = IngestSigner()
        let nonces = Nonces()
        let now: Int64 = 1_700_000_000_000
        let differences: [Int64] = [-300_000, 300_000, -300_001, 300_001, -301_000, 301_000]
        let signed = differences.map { difference in
            var signer = signer
            signer.timestamp = "\(now + difference)"
            signer.nonce = HexText.of(RandomBytes.make(16))
            return signer.request()
        }
        let all = try await answers(signed, directory: signer.directory(), claim: nonces.claim)
        #expect(all.map(\.status) == [200, 200, 401, 401, 401, 401])
        for answer in all[2...] { #expect(answer.body.contains("\(now)") && answer.refusalFlaw == nil) }
        #expect(nonces.claims == 2, "what is refused uses no nonce")
    }

    @Test("C8: an ingest without current control data refuses all calls, signed or not")
    func notCurrent() async throws {
        let signer = IngestSigner()
        var directory = signer.directory(requiresSignature: false)
        directory.isCurrent = false
        let submission = StubSubmission()
        let all = try await answers(
            [signer.request(), signer.request(headers: "")], directory: directory, submission: submission)
        #expect(all.map(\.status) == [503, 503] && all[0].refusalFlaw == nil)
        #expect(submission.pushes.isEmpty)
    }

    @Test("SEC6: without the store's reply a signed call is answered 503 with the time to retry")
    func storeAway() async throws {
        let signer = IngestSigner()
        let submission = StubSubmission()
        let all = try await answers([signer.request()], directory: signer.directory(), submission: submission) {
            _, _, _ throws(BusError) in throw BusError(.unanswered, "away")
        }
        #expect(all.map(\.status) == [503] && all[0].fields["retry-after"] != nil && all[0].refusalFlaw == nil)
        #expect(submission.pushes.isEmpty)
    }

    @Test("SEC6: where the switch is off an unsigned call is accepted, and a signed one is still checked")
    func switchOff() async throws {
        let signer = IngestSigner()
        var wrong = signer
        wrong.secret = RandomBytes.make(32)
        let headers = signer.headers.components(separatedBy: "\r\n").dropLast()
        let partial = headers.indices.map { index in
            signer.request(
                headers: headers.enumerated().filter { $0.offset != index }.map { $0.element + "\r\n" }.joined())
        }
        let all = try await answers(
            [signer.request(headers: ""), signer.request(), wrong.request()] + partial,
            directory: signer.directory(requiresSignature: false))
        #expect(all.map(\.status) == [200, 200, 401, 401, 401, 401, 401])
    }

    @Test(
        "SEC6: a header that is not of its form is refused with the form that it must have",
        arguments: [
            ("X-MSS-Timestamp", ["", "now", "-1", "+1", "1.5", "17000000000000000", " "]),
            ("X-MSS-Nonce", ["", "0011", "zz", String(repeating: "0", count: 31), String(repeating: "0", count: 66)]),
            ("X-MSS-Signature", ["", "00", String(repeating: "0", count: 66), "Zm9v"]),
        ])
    func forms(name: String, values: [String]) async throws {
        let signer = IngestSigner()
        let right = try #require(
            signer.headers.components(separatedBy: "\r\n").first { $0.hasPrefix(name + ":") })
        let requests = values.map { value in
            signer.request(headers: signer.headers.replacing(right, with: "\(name): \(value)"))
        }
        for answer in try await answers(requests, directory: signer.directory()) {
            #expect(answer.status == 401 && answer.body.contains(name) && answer.refusalFlaw == nil)
        }
    }

    @Test("SEC7: of 20 tenants each key opens its own instance and no other")
    func pairs() async throws {
        let signers = (0..<20).map { IngestSigner(instanceID: "w_\($0)", keyID: "k\($0)") }
        var directory = StubDirectory()
        for signer in signers {
            for instance in signer.directory().instances.values where !instance.keys.isEmpty { directory.add(instance) }
        }
        var requests: [String] = []
        for signer in signers {
            for other in signers {
                var call = signer
                call.nonce = HexText.of(RandomBytes.make(16))
                call.target = "/webapi/sync/single?instanceId=\(other.instanceID)"
                requests.append(call.request())
            }
        }
        let nonces = Nonces()
        let submission = StubSubmission()
        let all = try await answers(requests, directory: directory, submission: submission, claim: nonces.claim)
        for (index, answer) in all.enumerated() {
            let isOwn = index / 20 == index % 20
            #expect(answer.status == (isOwn ? 200 : 403), "key \(index / 20), instance \(index % 20)")
            if !isOwn { #expect(answer.refusalFlaw == nil) }
        }
        #expect(submission.pushes.count == 20 && nonces.claims == 20)
        // A call that names its instance twice or not at all belongs to no instance.
        for target in ["/webapi/sync/single", "/webapi/sync/single?instanceId=w_0&instanceId=w_0"] {
            var call = signers[0]
            call.target = target
            let answer = try await answers([call.request()], directory: directory)
            #expect(answer.map(\.status) == [403])
        }
    }

    @Test("SEC16: a key without its sealing key is refused, and the answer does not blame the caller")
    func masterKeyMissing() async throws {
        let signer = IngestSigner()
        let directory = signer.directory()
        let submission = StubSubmission()
        let admission = RequestAdmission.stub(directory: directory)
        try await IngestServerFixture.serve(submission: submission, directory: directory, admission: admission) {
            port in
            let answer = try #require(try await IngestServerFixture.exchange(port, signer.request()).first)
            #expect(answer.status == 503 && answer.refusalFlaw == nil)
        }
        #expect(submission.pushes.isEmpty)
    }
}
