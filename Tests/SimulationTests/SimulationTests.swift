import DeliveryHistory
import Foundation
import Synchronization
import TestSupport
import Testing

/// Runs the real parts of delivery in one thread: faults by seed, then healing, then the checks of the promises.
///
/// `MSS_SIMULATION_SEEDS` is the number of seeds (200), `MSS_SIMULATION_FIRST` the first seed (1). The same seed makes
/// the same run only with `SWIFT_DETERMINISTIC_HASHING=1`, which `deploy/test` sets.
@Suite("Simulation", .serialized)
struct SimulationTests {
    static func number(_ name: String, or usual: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
    }

    static func run(_ seed: UInt64, keepsLog: Bool = false) throws -> SimulatedService {
        let parent = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        let folder = URL(fileURLWithPath: parent).appendingPathComponent("mss-simulation-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let service = SimulatedService(seed: seed, folder: folder, keepsLog: keepsLog)
        service.run()
        return service
    }

    @Test("after any faults, answered pushes arrive once, in order, and only at their receivers")
    func promise() throws {
        let (first, count) = (Self.number("MSS_SIMULATION_FIRST", or: 1), Self.number("MSS_SIMULATION_SEEDS", or: 200))
        let next = Atomic<Int>(first)
        let failed = Mutex<[String]>([])
        let totals = Mutex((events: 0, pushes: 0, handOuts: 0))
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            while true {
                let seed = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard seed < first + count else { return }
                do {
                    let service = try Self.run(UInt64(seed), keepsLog: count == 1)
                    totals.withLock {
                        $0.events += service.simulation.eventCount
                        $0.pushes += service.history.checker.invokedPushes
                        $0.handOuts += service.history.checker.counts.handOuts
                    }
                    if count == 1 { print((service.simulation.log ?? []).joined(separator: "\n")) }
                    guard let fault = service.history.faults.first else { continue }
                    failed.withLock { $0.append("seed \(seed): \(fault)") }
                } catch {
                    failed.withLock { $0.append("seed \(seed): \(error)") }
                }
            }
        }
        let total = totals.withLock { $0 }
        print("\(count) seeds: \(total.events) events, \(total.pushes) pushes, \(total.handOuts) hand-outs")
        #expect(failed.withLock { $0.sorted() } == [])
        // A run without hand-outs proves nothing.
        #expect(total.handOuts > total.pushes)
    }

    @Test(
        "a seed makes the same run again",
        .enabled(if: ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] != nil), arguments: 1...5)
    func replay(seed: UInt64) throws {
        let (once, again) = (try Self.run(seed, keepsLog: true), try Self.run(seed, keepsLog: true))
        let difference = zip(once.simulation.log ?? [], again.simulation.log ?? []).first { $0 != $1 }
        #expect(difference == nil)
        #expect(once.simulation.traceHash == again.simulation.traceHash)
        #expect(once.simulation.eventCount == again.simulation.eventCount)
    }
}
