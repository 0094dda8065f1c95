import DeviceProtocol
import Foundation
import Logging
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

@Suite("Client library against a test gateway", .timeLimit(.minutes(5)))
struct SyncClientTests {
    @Test("pushes are shown once and in order, and acknowledged; repeats and overlaps are dropped")
    func duplicates() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                let connect = try await session.greet()
                #expect(connect.instanceID == "app" && connect.deviceID == "d" && !connect.storeID.isEmpty)
                #expect(connect.bind.userID == "u" && connect.bind.sessionID == "s" && connect.bind.syncPoints == [])
                session.push([2, 3], after: 0, upto: 3)
                #expect(try await session.nextStored().map(\.upto) == [3])
                session.push([2, 3], after: 0, upto: 3)
                #expect(try await session.nextStored().map(\.upto) == [3])
                session.push([3, 4, 7], after: 2, upto: 9)
                #expect(try await session.nextStored().map(\.upto) == [9])
                try await app.shows([2, 3, 4, 7])
                #expect(app.oplogs.map(\.payload) == ["2", "3", "4", "7"].map { Array($0.utf8) })
            }
        }
    }

    @Test("a gap is not stored: the client reconnects and reports its positions") func gap() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.push([1], after: 0, upto: 1)
                _ = try await first.nextStored()
                first.push([9], after: 8, upto: 9)
                try await first.ended()
                let second = try await gateway.accept()
                let connect = try await second.greet()
                #expect(connect.bind.syncPoints.map(\.oplogID) == [1])
                second.push([5, 9], after: 1, upto: 9)
                try await app.shows([1, 5, 9])
            }
        }
    }

    @Test("cut off between storing and acknowledging: the gateway repeats, the app sees it once")
    func lostAcknowledgement() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.push([1, 2], after: 0, upto: 2)
                try await app.shows([1, 2])
                first.cut()
                // A gateway that did not receive the acknowledgement begins after its own sync point.
                let second = try await gateway.accept()
                _ = try await second.greet()
                second.push([1, 2, 3], after: 0, upto: 3)
                #expect(try await second.nextStored().map(\.upto) == [3])
                try await app.shows([1, 2, 3])
            }
        }
    }

    @Test("a new process on the same store: confirmed oplogs never come again, the rest once more")
    func newProcess() async throws {
        try await FakeGateway.withStore { gateway, store in
            let first = try ClientApp(port: gateway.port, store: store)
            try await first.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3)
                try await first.shows([1, 2, 3])
                try await first.client.confirm(Array(first.oplogs.prefix(2)))
            }
            let second = try ClientApp(port: gateway.port, store: store)
            try await second.running {
                let session = try await gateway.accept()
                let connect = try await session.greet()
                #expect(connect.bind.syncPoints.map(\.oplogID) == [3])
                session.push([4], after: 3, upto: 4)
                try await second.shows([3, 4])
            }
        }
    }

    @Test("a client holds its store until its run() ends; then another client can use it, and the first one again")
    func oneClient() async throws {
        try await FakeGateway.withStore { gateway, store in
            // The first wait is longer than the test, so no resend occurs.
            let first = try ClientApp(port: gateway.port, store: store, firstResend: .seconds(600))
            #expect(throws: SyncError.self) { try ClientApp(port: gateway.port, store: store) }
            try await first.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2], after: 0, upto: 2)
                try await first.shows([1, 2])
                let error = #expect(throws: SyncError.self) { try ClientApp(port: gateway.port, store: store) }
                #expect(error?.code == .storeInUse)
            }
            let second = try ClientApp(port: gateway.port, store: store, firstResend: .seconds(600))
            try await second.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await second.shows([1, 2])
                try await second.client.confirm(Array(second.oplogs.prefix(1)))
                let error = await #expect(throws: SyncError.self) { try await first.client.confirm(first.oplogs) }
                #expect(error?.code == .storeInUse)
                session.push([3], after: 2, upto: 3)
                try await second.shows([1, 2, 3])
            }
            // Between runs, each call opens the store. The next run begins with the other client's data.
            #expect(try await first.client.channelSummaries().first?.last?.oplogID == 3)
            try await first.running {
                let session = try await gateway.accept()
                let connect = try await session.greet()
                #expect(connect.bind.syncPoints.map(\.oplogID) == [3])
                try await first.shows([1, 2, 2, 3])
            }
        }
    }

    @Test("confirmations are reported until the gateway has recorded them, over connections and processes")
    func reports() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.push([1, 2], after: 0, upto: 2)
                try await app.shows([1, 2])
                try await app.client.confirm(app.oplogs)
                let report = try await first.nextReport()
                #expect(report.channels.flatMap(\.oplogIds) == [1, 2])
                first.cut()
                let second = try await gateway.accept()
                _ = try await second.greet()
                let again = try await second.nextReport()
                #expect(again.channels.flatMap(\.oplogIds) == [1, 2])
                second.send(.with { $0.confirmRecorded.reportID = again.reportID })
                // The client deletes recorded confirmations, so the next report has only new ones.
                second.push([3], after: 2, upto: 3)
                try await app.shows([1, 2, 3])
                try await app.client.confirm(app.oplogs.suffix(1))
                #expect(try await second.nextReport().channels.flatMap(\.oplogIds) == [3])
            }
        }
    }

    @Test("another user: late frames of the former are dropped, its data waits, and comes with the bind back")
    func users() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, user: "a")
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                try await app.shows([1])
                try app.client.bind(userID: "b", sessionID: "s")
                let bind = try await session.nextBind()
                #expect(bind.userID == "b" && bind.bindNumber == 2 && bind.syncPoints == [])
                session.push([2], after: 1, upto: 2, bind: 1)
                session.accept(2)
                session.push([8], after: 0, upto: 8, bind: 2)
                try await app.shows([1, 8])
                #expect(app.oplogs.map(\.userID) == ["a", "b"])
                try app.client.bind(userID: "a", sessionID: "s")
                let back = try await session.nextBind()
                #expect(back.bindNumber == 3 && back.syncPoints.map(\.oplogID) == [1])
                session.accept(3)
                session.push([2], after: 1, upto: 2, bind: 3)
                try await app.shows([1, 8, 2])
            }
        }
    }

    @Test("close codes decide: stay away, come back later, come back without the user")
    func closeCodes() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            let end = try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.send(
                    .with {
                        $0.close.code = 2_999
                        $0.close.retryAfterMs = 10
                    })
                let second = try await gateway.accept()
                #expect(try await second.greet().hasBind)
                second.send(.with { $0.close.code = 4_000 })
                let third = try await gateway.accept()
                #expect(!(try await third.greet().hasBind))
                try app.client.bind(userID: "u", sessionID: "new")
                #expect(try await third.nextBind().sessionID == "new")
                third.send(.with { $0.close.code = CloseCode.unknownInstance.rawValue })
                try await eventually("run() ends", within: .seconds(5)) {
                    app.client.status == .notAvailable && app.events.contains(.closed(code: 5_001, reason: ""))
                }
            }
            #expect(end?.code == .closedForGood && end?.closeCode == 5_001)
        }
    }

    @Test("an invalid session is reported to the app, and the connection continues") func invalid() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.send(
                    .with {
                        $0.sessionState.bindNumber = 1
                        $0.sessionState.validity = .invalid
                        $0.sessionState.reason = "signed out"
                    })
                session.push([1], after: 0, upto: 1)
                try await app.shows([1])
                try await eventually("the event", within: .seconds(5)) {
                    app.events.contains(.sessionInvalid(userID: "u", reason: "signed out"))
                }
            }
        }
    }

    @Test("bytes that are not a frame end the connection, and the client reconnects") func garbage() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.sendRaw([0xff, 0xff, 0xff, 0xff])
                try await first.ended()
                let second = try await gateway.accept()
                _ = try await second.greet()
                second.push([1], after: 0, upto: 1)
                try await app.shows([1])
            }
        }
    }

    @Test("a store of another device is refused with a reason") func foreignStore() async throws {
        try await FakeGateway.withStore { gateway, store in
            _ = try ClientApp(port: gateway.port, store: store)
            let configuration = SyncClientConfiguration(
                host: "127.0.0.1", port: gateway.port, instanceID: "app", deviceID: "other", storePath: store.path)
            let error = #expect(throws: SyncError.self) {
                try SyncClient(configuration: configuration, logger: Logger(label: "test"))
            }
            #expect(error?.code == .foreignStore)
        }
    }
}
