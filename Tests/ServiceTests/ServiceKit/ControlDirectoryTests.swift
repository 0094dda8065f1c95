import BusMessages
import Logging
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@testable import ServiceKit

@Suite("A process's copy of the control data") struct ControlDirectoryTests {
    /// A directory, and writers that reply when the test says so.
    private final class Bench: Sendable {
        private let recorder = BusRecorder()
        private let bus: MessageBus
        let directory: ControlDirectory

        init() {
            let clock = RisingClock()
            bus = recorder.makeBus(clock: ProcessClock(now: clock.next, wallTime: ProcessClock.system.wallTime))
            directory = ControlDirectory(
                bus: bus, keysFor: nil,
                wakeUps: AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            ) {}
        }

        /// Waits for a request of the directory. Returns its correlation.
        func nextRequest() async throws -> UInt64 {
            var found: Mss_Bus_V1_ControlCommand?
            try await eventually("a request for control data", within: .seconds(10)) {
                found = recorder.takeCommands(to: .snapshot, as: Mss_Bus_V1_ControlCommands.self).first
                return found != nil
            }
            return found?.correlation ?? 0
        }

        func answer(_ correlation: UInt64, version: Int64) {
            recorder.deliver(
                .with {
                    $0.correlation = correlation
                    $0.snapshot.version = version
                })
        }

        func refresh() async { await untilCancelled { await directory.refresh() } }

        /// The version after newer data was asked for; nil: there was none.
        func versionAfterRefresh() async -> Int64? {
            await untilCancelled { await directory.refreshed() ? directory.version : nil }
        }

        func callersWait(_ count: Int) async throws {
            try await eventually("\(count) callers wait", within: .seconds(10)) {
                directory.waiting.withLock { $0?.count } == count
            }
        }

        /// Ends the request in flight without a reply.
        func endRequest() { bus.expireRequests() }

        /// When the test is cancelled, ends the request in flight, and tells the waiting callers that there is no newer
        /// data. So a failed test ends.
        private func untilCancelled<Value>(_ body: () async -> Value) async -> Value {
            await withTaskCancellationHandler(operation: body) {
                directory.refuseCallers()
                endRequest()
            }
        }
    }

    /// Each look at this clock is 10 s after the one before, so every request is late.
    private final class RisingClock: Sendable {
        private let start = ContinuousClock.now
        private let looks = Atomic<Int>(0)

        func next() -> ContinuousClock.Instant {
            start + .seconds(10 * looks.add(1, ordering: .relaxed).newValue)
        }
    }

    @Test("D17: a caller that asks for newer data waits for a request that was sent after that")
    func refreshed() async throws {
        let bench = Bench()
        async let first: Void = bench.refresh()
        let firstRequest = try await bench.nextRequest()
        async let one = bench.versionAfterRefresh()
        async let other = bench.versionAfterRefresh()
        try await bench.callersWait(2)
        bench.answer(firstRequest, version: 1)
        await first
        #expect(bench.directory.version == 1)
        async let second: Void = bench.refresh()
        bench.answer(try await bench.nextRequest(), version: 2)
        await second
        #expect(await [one, other] == [2, 2])
        async let unanswered = bench.versionAfterRefresh()
        try await bench.callersWait(1)
        async let third: Void = bench.refresh()
        _ = try await bench.nextRequest()
        bench.endRequest()
        await third
        #expect(await unanswered == nil)
    }

    @Test("D17: a running process requests newer data for its callers; after its end there is none")
    func running() async throws {
        let bench = Bench()
        let hasEnded = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await bench.directory.run()
                hasEnded.set()
            }
            let found = await Result {
                bench.answer(try await bench.nextRequest(), version: 1)
                async let version = bench.versionAfterRefresh()
                // Two replies: the first request can be the one of every second, sent before the caller waited.
                for number in [2, 3] as [Int64] {
                    bench.answer(try await bench.nextRequest(), version: number)
                }
                return await version
            }
            group.cancelAll()
            try await eventually("the directory ends", within: .seconds(10)) {
                bench.endRequest()
                return hasEnded.isSet
            }
            #expect(try found.get() ?? 0 >= 2)
        }
        #expect(await bench.versionAfterRefresh() == nil)
    }
}
