import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import Synchronization
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: admission during changes")
struct IngestAdmissionTests {
    /// Control data that changes while a call is made.
    private final class ChangingDirectory: CallerLookup {
        private let current: Mutex<StubDirectory>

        init(_ directory: StubDirectory) { current = Mutex(directory) }

        func set(_ directory: StubDirectory) { current.withLock { $0 = directory } }

        private var now: StubDirectory { current.withLock { $0 } }
        var isLoaded: Bool { now.isLoaded }
        var isCurrent: Bool { now.isCurrent }
        var someBackendKey: String { now.someBackendKey }
        func instance(_ id: InstanceID) -> Instance? { now.instance(id) }
        func instance(ofBackendKey keyID: String) -> Instance? { now.instance(ofBackendKey: keyID) }
        func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
            now.configuration(instanceID, bizType)
        }
        func refreshed() async -> Bool { await now.refreshed() }
    }

    private func head(of signer: IngestSigner, isSigned: Bool = true) -> HTTPRequestHead {
        var fields = HTTPHeaders()
        for line in isSigned ? signer.headers.components(separatedBy: "\r\n").dropLast() : [] {
            let parts = line.components(separatedBy: ": ")
            fields.add(name: parts[0], value: parts[1])
        }
        return HTTPRequestHead(version: .http1_1, method: .POST, uri: signer.target, headers: fields)
    }

    /// The status of the answer to the caller; 200: the call is admitted.
    ///
    /// - Parameter meanwhile: runs while the body arrives.
    private func status(
        _ admission: RequestAdmission, _ signer: IngestSigner, isSigned: Bool = true, meanwhile: () -> Void = {}
    ) async -> UInt {
        let head = head(of: signer, isSigned: isSigned)
        let query = RequestQuery(head)
        do throws(EarlyRefusal) {
            let headers = try admission.headers(of: head, query)
            meanwhile()
            _ = try await admission.admit(head, headers, query, body: Array(signer.body.utf8))
            return 200
        } catch {
            return error.answer.status.code
        }
    }

    @Test("SEC6: the rules at the end of the body decide, so a slow body evades no new switch")
    func slowBody() async {
        let signer = IngestSigner()
        let open = signer.directory(requiresSignature: false)
        var stale = open
        stale.isCurrent = false
        var revoked = signer.directory()
        revoked.add(
            Instance(id: InstanceID("w_app"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .zero))
        let directory = ChangingDirectory(open)
        let admission = RequestAdmission.stub(directory: directory, ring: IngestSigner.ring)
        func status(isSigned: Bool, then changed: StubDirectory) async -> UInt {
            directory.set(open)
            return await self.status(admission, signer, isSigned: isSigned) { directory.set(changed) }
        }
        #expect(await status(isSigned: false, then: open) == 200)
        #expect(await status(isSigned: false, then: signer.directory()) == 401)
        #expect(await status(isSigned: false, then: stale) == 503)
        #expect(await status(isSigned: true, then: signer.directory()) == 200)
        #expect(await status(isSigned: true, then: revoked) == 401)
        #expect(await status(isSigned: true, then: stale) == 503)
    }

    @Test("SEC7: an instance's name is compared by bytes, not by appearance")
    func names() async {
        var signer = IngestSigner(instanceID: "w_\u{e9}")
        let admission = RequestAdmission.stub(directory: signer.directory(), ring: IngestSigner.ring)
        for (name, expected) in [("w_%C3%A9", 200), ("w_e%CC%81", 403)] as [(String, UInt)] {
            signer.target = "/webapi/sync/single?instanceId=\(name)"
            signer.nonce = HexText.of(RandomBytes.make(16))
            #expect(await status(admission, signer) == expected, "\(name)")
        }
    }

    @Test("SEC6: replays use nothing of the key's rate")
    func replays() async {
        let signer = IngestSigner()
        let used = Mutex<Set<[UInt8]>>([])
        let admission = RequestAdmission.stub(
            directory: signer.directory(limits: KeyLimits(requestsPerSecond: 2)), ring: IngestSigner.ring,
            claim: { nonce, _, _ in used.withLock { $0.insert(nonce).inserted } })
        #expect(await status(admission, signer) == 200)
        // The key may make this number of calls in 50 s.
        for _ in 0..<100 { #expect(await status(admission, signer) == 401) }
        var fresh = signer
        fresh.nonce = HexText.of(RandomBytes.make(16))
        #expect(await status(admission, fresh) == 200)
    }
}
