import Credentials
import Crypto
import Foundation
import NIOHTTP1
import SyncModel
import Testing

@testable import IngestAPI

private let samples = ProcessInfo.processInfo.environment["MSS_TEST_TIMING"].flatMap { Int($0) } ?? 0

/// Measures whether the time of a refusal depends on the key or the signature (SEC6). This is a measurement, not part
/// of the tests: `MSS_TEST_TIMING=1000000 deploy/test --filter SignatureTiming`, on a machine without other work.
@Suite(
    "Signature timing",
    .enabled(if: samples > 0, "a measurement; set MSS_TEST_TIMING to the number of samples"))
struct SignatureTimingTests {
    /// Looks up keys like the directory of a process.
    private struct Directory: CallerLookup {
        var instances: [InstanceID: Instance] = [:]
        var instanceOfKey: [String: InstanceID] = [:]
        var isLoaded: Bool { true }
        var isCurrent: Bool { true }
        func instance(_ id: InstanceID) -> Instance? { instances[id] }
        var backendKeys: [String] = []
        var someBackendKey: String { backendKeys.randomElement() ?? "" }
        func instance(ofBackendKey keyID: String) -> Instance? { instanceOfKey[keyID].flatMap { instances[$0] } }
        func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? { nil }
        func refreshed() async -> Bool { true }
    }

    /// The running mean and variance of measured values.
    private struct Moments {
        private(set) var count = 0.0
        private(set) var mean = 0.0
        private var squares = 0.0
        var variance: Double { squares / (count - 1) }

        mutating func add(_ value: Double) {
            count += 1
            let difference = value - mean
            mean += difference / count
            squares += difference * (value - mean)
        }

        /// Welch's t.
        func t(_ other: Self) -> Double {
            (mean - other.mean) / (variance / count + other.variance / other.count).squareRoot()
        }
    }

    /// A call whose signature has one wrong byte.
    private static func call(
        of signer: IngestSigner, wrongAt place: Int
    ) throws -> (headers: SignatureHeaders, signature: RequestSignature) {
        let signature = RequestSignature(
            method: signer.method, target: signer.target, body: Array(signer.body.utf8), timestamp: signer.timestamp,
            nonce: signer.nonce, keyID: signer.keyID)
        var code = signature.code(with: SymmetricKey(data: signer.secret))
        code[place] ^= 1
        var fields = HTTPHeaders()
        // A copy, as from a socket: comparing texts with shared memory would be faster.
        let keyID = String(decoding: Array(signer.keyID.utf8), as: UTF8.self)
        let texts = [keyID, signer.timestamp, signer.nonce, HexText.of(code)]
        for (name, text) in zip(["X-MSS-Key", "X-MSS-Timestamp", "X-MSS-Nonce", "X-MSS-Signature"], texts) {
            fields.add(name: name, value: text)
        }
        return (
            try #require(
                try SignatureHeaders(HTTPRequestHead(version: .http1_1, method: .POST, uri: "/", headers: fields))),
            signature
        )
    }

    @Test("SEC6: wrong in the first byte, in the last byte, unknown key: no difference in time, t < 4.5")
    func timing() throws {
        var directory = Directory()
        let signers = (100..<300).map { IngestSigner(instanceID: "w_\($0)", keyID: "k0011223344556\($0)") }
        for signer in signers {
            for instance in signer.directory().instances.values where !instance.keys.isEmpty {
                directory.instances[instance.id] = instance
                directory.instanceOfKey[signer.keyID] = instance.id
                directory.backendKeys.append(String(decoding: Array(signer.keyID.utf8), as: UTF8.self))
            }
        }
        let check = SignatureCheck(directory: directory, keys: OpenedKeys(ring: IngestSigner.ring))
        // Many calls of each kind in alternation, so that no memory address and no hash of one text decides.
        var calls: [(kind: Int, headers: SignatureHeaders, signature: RequestSignature)] = []
        for number in 0..<2_000 {
            let signer = signers[number % 200]
            var unknown = signer
            unknown.keyID = "k999999999999\(1_000 + number)"
            for (kind, (signer, place)) in [(signer, 0), (signer, 31), (unknown, 0)].enumerated() {
                let call = try Self.call(of: signer, wrongAt: place)
                calls.append((kind, call.headers, call.signature))
            }
        }
        calls.shuffle()
        let clock = ContinuousClock()
        var others = 0
        var times = [[Int64]](repeating: [], count: 3)
        for _ in 0..<samples {
            // At random, so that other work of the machine affects all kinds alike.
            let call = calls[Int.random(in: calls.indices)]
            let start = clock.now
            let outcome = check.outcome(of: call.headers, over: call.signature)
            let time = start.duration(to: clock.now)
            if outcome != .wrong { others += 1 }
            times[call.kind].append(time.components.attoseconds / 1_000_000_000)
        }
        #expect(others == 0)
        // Without the slowest tenth, which contains interrupts and other processes.
        let limit = times.joined().sorted()[samples * 9 / 10]
        let moments = times.map { times in
            times.filter { $0 <= limit }.reduce(into: Moments()) { $0.add(Double($1)) }
        }
        for (one, other, name) in [(0, 1, "first and last byte"), (0, 2, "wrong and unknown key")] {
            let t = moments[one].t(moments[other])
            print("\(name): means \(moments[one].mean) and \(moments[other].mean) ns, t = \(t)")
            #expect(abs(t) < 4.5, "\(name)")
        }
    }
}
