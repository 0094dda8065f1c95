import BusMessages
import Logging
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@testable import ServiceKit

@Suite("A process's copy of the control data") struct ControlDirectoryTests {
    private let recorder = BusRecorder()

    /// Waits for a request of the directory. Returns its correlation.
    private func nextRequest() async throws -> UInt64 {
        var found: Mss_Bus_V1_ControlCommand?
        try await eventually("a request for control data", within: .seconds(10)) {
            found = recorder.takeCommands(to: .snapshot, as: Mss_Bus_V1_ControlCommands.self).first
            return found != nil
        }
        return found?.correlation ?? 0
    }

    private func answer(_ correlation: UInt64, version: Int64) {
        recorder.deliver(
            .with {
                $0.correlation = correlation
                $0.snapshot.version = version
            })
    }

    @Test("D17: whoever asks for newer data waits for a request that was sent after that, until shutdown")
    func refreshed() async throws {
        let directory = ControlDirectory(
            bus: recorder.makeBus(), keysFor: nil, wakeUps: AsyncStream.makeStream(of: Void.self),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        ) {}
        func versionAfterRefresh() async -> Int64? { await directory.refreshed() ? directory.version : nil }
        func callersWait(_ count: Int) async throws {
            try await eventually("\(count) callers wait", within: .seconds(10)) {
                directory.waiting.withLock { $0?.count } == count
            }
        }
        async let first: Void = directory.refresh()
        let firstRequest = try await nextRequest()
        async let one = versionAfterRefresh()
        async let other = versionAfterRefresh()
        try await callersWait(2)
        answer(firstRequest, version: 1)
        await first
        #expect(directory.version == 1)
        async let second: Void = directory.refresh()
        answer(try await nextRequest(), version: 2)
        await second
        #expect(await [one, other] == [2, 2])
        async let last = versionAfterRefresh()
        try await callersWait(1)
        directory.refuseCallers()
        #expect(await [last, versionAfterRefresh()] == [nil, nil])
    }
}
