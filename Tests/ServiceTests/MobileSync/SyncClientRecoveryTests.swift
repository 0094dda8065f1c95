import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

@Suite("Client library: recoveries and a full store always go on", .timeLimit(.minutes(5)))
struct SyncClientRecoveryTests {
    private func refuse(_ request: Mss_Device_V1_HistoryRequest, _ session: FakeGateway.Session) {
        session.send(
            .with {
                $0.historyPage.requestNumber = request.requestNumber
                $0.historyPage.refusal = .notEligible
            })
    }

    // MARK: Recovery

    @Test("K2: a recovery that was requested without a user brings user data to that user only")
    func ownerless() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, user: nil)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await app.client.recover("B")
                refuse(try await session.nextRequest(), session)
                try app.client.bind(userID: "u", sessionID: "s")
                session.accept(try await session.nextBind().bindNumber)
                async let answers: Void = {
                    while true { session.answer(try await session.nextRequest(), holding: 1...3) }
                }()
                try await app.shows([1, 2, 3])
                #expect(app.oplogs.map(\.userID) == ["u", "u", "u"])
                app.client.disconnect()
                try? await answers
            }
        }
    }

    @Test("a recovery that is refused does not hold up the others") func refusedOne() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await app.client.recover("A")
                let first = try await session.nextRequest()
                #expect(first.bizType == "A")
                refuse(first, session)
                try await app.client.recover("B")
                let second = try await session.nextRequest()
                #expect(second.bizType == "B")
                session.answer(second, holding: 1...3)
                try await app.shows([1, 2, 3])
            }
        }
    }

    // MARK: Full store

    /// Pushes until the client's store is full. Returns the last stored id.
    private func fill(_ session: FakeGateway.Session) async throws -> Int64 {
        var stored: Int64 = 0
        while stored < 50_000 {
            let upto = stored + 100
            session.push(Array(stored + 1...upto), after: stored, upto: upto, padding: 1_000)
            session.send(.with { $0.ping.number = UInt64(upto) })
            var isStored = false
            var isAnswered = false
            while !isAnswered {
                switch try await session.next().body {
                case .storedAck: isStored = true
                case .pong: isAnswered = true
                default: break
                }
            }
            if !isStored { return stored }
            stored = upto
        }
        throw Failure("the store never filled up")
    }

    @Test(
        "K8: a full store acknowledges nothing; dropped data comes when confirmations are recorded"
    )
    func fullUntilRecorded() async throws {
        try await FakeGateway.withStore { gateway, store in
            // On a busy machine, filling the store takes longer than the ladder's first wait.
            let app = try ClientApp(port: gateway.port, store: store, firstResend: .seconds(600)) {
                $0.storeLimit = 1_000_000
            }
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                let stored = try await fill(first)
                try await eventually("all are shown", within: .seconds(60)) { app.ids.last == stored }
                #expect(app.ids == Array(1...stored) && app.events.filter { $0 == .storeFull }.count == 1)
                try await app.client.confirm(app.oplogs)
                async let records: Void = {
                    while true {
                        let report = try await first.nextReport()
                        first.send(.with { $0.confirmRecorded.reportID = report.reportID })
                    }
                }()
                let second = try await gateway.accept()
                #expect(try await second.greet().bind.syncPoints.map(\.oplogID) == [stored])
                second.push(Array(stored + 1...stored + 100), after: stored, upto: stored + 100)
                #expect(try await second.nextStored().map(\.upto) == [stored + 100])
                try? await records
            }
        }
    }

    @Test("K8: a full store drops all later data without reporting a gap, and is not caught up")
    func fullDropsTheRest() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store) { $0.storeLimit = 1_000_000 }
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                let stored = try await fill(session)
                session.push([stored + 101], after: stored + 100, upto: stored + 101)
                session.send(.with { $0.caughtUp.bindNumber = 1 })
                session.send(.with { $0.ping.number = 1 })
                let pong = try await session.next { packet -> UInt64? in
                    if case .pong(let pong)? = packet.body { pong.number } else { nil }
                }
                #expect(pong == 1 && !app.client.isCaughtUp)
                #expect(!app.events.contains(.caughtUp(userID: "u")))
            }
        }
    }

    // MARK: Arguments

    @Test("an impossible Sync ID, and too many suspended ones, are refused with a reason")
    func arguments() async throws {
        try await FakeGateway.withStore { gateway, store in
            let client = try ClientApp(port: gateway.port, store: store).client
            for number in 1...200 { try await client.suspend("B\(number)") }
            try await client.suspend("B1")
            for bizType in ["B201", "", String(repeating: "x", count: 31)] {
                let error = await #expect(throws: SyncError.self) { try await client.suspend(bizType) }
                #expect(error?.code == .invalidArgument)
            }
            let error = await #expect(throws: SyncError.self) { try await client.recover("") }
            #expect(error?.code == .invalidArgument)
        }
    }
}
