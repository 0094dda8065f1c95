import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

@Suite("SyncClient: resends of unconfirmed oplogs", .timeLimit(.minutes(5)))
struct SyncClientResendTests {
    /// The first wait. The whole ladder takes 95 times as long.
    private let firstResend = Duration.milliseconds(5)

    /// A longer first wait, for tests that act before the last wait is over.
    private let unhurriedResend = Duration.milliseconds(20)

    private func next(_ reader: inout SyncOplogs.AsyncIterator) async throws -> SyncOplog {
        try requireValue(try await reader.next(), "the sequence has ended")
    }

    /// Reads until each of these oplogs had its seventh attempt.
    private func wholeLadders(
        of ids: Set<Int64>, _ reader: inout SyncOplogs.AsyncIterator
    ) async throws -> [SyncOplog] {
        var shown: [SyncOplog] = []
        while !ids.isSubset(of: shown.filter { $0.attempt == 7 }.map(\.oplogID)) {
            shown.append(try await next(&reader))
        }
        return shown
    }

    @Test("seven attempts as the gateway times them, each repeat and the death reported, and then no more")
    func ladder() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet(firstResend: 5)
                session.push([1], after: 0, upto: 1)
                let resent = try await session.recordResends()
                #expect(app.attempts(1) == Array(1...7))
                #expect(resent.allSatisfy { $0.bizType == "B" && $0.bindNumber == 1 && $0.oplogID == 1 })
                let repeats = resent.dropLast().map(\.attempts)
                #expect(repeats == repeats.sorted() && Set(repeats).isSubset(of: 2...7) && !repeats.isEmpty)
                #expect(resent.last?.attempts == 7 && resent.last?.dead == true)
                // The dead letter is recorded, a confirmation still counts, and later oplogs were delivered.
                try await app.client.confirm(Array(app.oplogs.suffix(1)))
                let report = try await session.nextReport()
                #expect(report.channels.flatMap(\.oplogIds) == [1] && report.resent.allSatisfy { !$0.dead })
                session.push([2], after: 1, upto: 2)
                try await eventually("2 is shown", within: .seconds(5)) { app.ids.last == 2 }
            }
        }
    }

    @Test("counts survive a restart, which is a hand-out but no step; dead letters stay dead")
    func restart() async throws {
        try await FakeGateway.withStore { gateway, store in
            let first = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await first.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                try await eventually("the third attempt", within: .seconds(5)) { first.attempts(1).count >= 3 }
            }
            let known = first.attempts(1)
            #expect(known == Array(1...known.count))
            let second = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await second.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                let last = try await session.recordResends().last
                #expect(last?.dead == true && last?.attempts == 8)
                #expect(second.attempts(1) == Array(known.count + 1...8))
                // This push follows the record of the dead letter, so the client has processed the record.
                session.push([2], after: 1, upto: 2)
                _ = try await session.nextStored()
            }
            let third = try ClientApp(port: gateway.port, store: store)
            try await third.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await third.shows([2])
                try await third.client.confirm(third.oplogs)
                let report = try await session.nextReport()
                #expect(report.channels.flatMap(\.oplogIds) == [2] && report.resent.allSatisfy { $0.oplogID == 2 })
            }
        }
    }

    @Test("time without a connection does not count") func disconnected() async throws {
        try await FakeGateway.withStore { gateway, store in
            let early = try ClientApp(port: gateway.port, store: store)
            try await early.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                try await early.shows([1])
            }
            let app = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await app.running {
                let session = try await gateway.accept()
                try await app.shows([1])
                // While another client's whole ladder runs, this client has no `Connected`, so its ladder does not
                // advance.
                try await ladderOfAnother(gateway)
                #expect(app.attempts(1) == [2])
                do {
                    _ = try await session.greet()
                    _ = try await session.recordResends()
                } catch {
                    // On a busy machine the ladder takes longer than the client waits for `Connected`.
                    let next = try await gateway.accept()
                    _ = try await next.greet()
                    _ = try await next.recordResends()
                }
                #expect(app.attempts(1) == Array(2...8))
            }
        }
    }

    /// Waits for the whole ladder of another device.
    private func ladderOfAnother(_ gateway: FakeGateway) async throws {
        let store = URL(filePath: NSTemporaryDirectory()).appending(path: "client-\(UUID().uuidString).sqlite")
        defer {
            for suffix in ["", "-wal", "-shm", ".lock"] {
                try? FileManager.default.removeItem(atPath: store.path + suffix)
            }
        }
        let other = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
        try await other.running {
            let session = try await gateway.accept()
            _ = try await session.greet()
            session.push([1], after: 0, upto: 1)
            _ = try await session.recordResends()
        }
    }

    @Test("a Sync ID without a reader takes no step, not even the last, while others do")
    func unread() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, firstResend: unhurriedResend)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                do {
                    var reader = app.client.oplogs(of: "B").makeAsyncIterator()
                    #expect(try await wholeLadders(of: [1], &reader).map(\.attempt) == Array(1...7))
                }
                session.push([2], after: 0, upto: 2, bizType: "C")
                var others = app.client.oplogs(of: "C").makeAsyncIterator()
                _ = try await wholeLadders(of: [2], &others)
                #expect(try await session.recordResends().filter(\.dead).map(\.oplogID) == [2])
                let reader = app.client.oplogs(of: "B").makeAsyncIterator()
                #expect(try await session.recordResends().map(\.oplogID) == [1])
                withExtendedLifetime(reader) {}
            }
        }
    }

    @Test("data of a user who is not bound takes no step, not even the last") func otherUser() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, user: "a", firstResend: unhurriedResend)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                try await eventually("the seventh attempt", within: .seconds(10)) { app.attempts(1).count == 7 }
                try app.client.bind(userID: "b", sessionID: "s")
                _ = try await session.nextBind()
                session.accept(2)
                session.push([8], after: 0, upto: 8, bind: 2)
                let resent = try await session.recordResends()
                #expect(resent.filter { $0.bindNumber == 2 }.allSatisfy { $0.oplogID == 8 })
                #expect(app.attempts(1) == Array(1...7) && app.attempts(8) == Array(1...7))
            }
            // The oplog did not become a dead letter meanwhile: after a restart it is handed out again.
            let back = try ClientApp(port: gateway.port, store: store, user: "a")
            try await back.running {
                try await back.shows([1])
                #expect(back.attempts(1) == [8])
            }
        }
    }

    @Test("a confirmed oplog, at once or after a resend, never comes again, and later ones do not wait")
    func confirmed() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3)
                var reader = app.client.allOplogs().makeAsyncIterator()
                try await app.client.confirm(try await next(&reader))
                var shown: [SyncOplog] = []
                while !shown.contains(where: { $0.oplogID == 2 && $0.attempt == 3 }) {
                    shown.append(try await next(&reader))
                }
                try await app.client.confirm(shown.filter { $0.oplogID == 2 })
                while shown.last?.attempt != 7 { shown.append(try await next(&reader)) }
                #expect(shown.filter { $0.oplogID == 2 }.map(\.attempt) == [1, 2, 3])
                #expect(shown.filter { $0.oplogID == 3 }.map(\.attempt) == Array(1...7))
                #expect(!shown.contains { $0.oplogID == 1 })
                // The resends of an oplog that was confirmed later are reported too.
                let resent = try await session.recordResends()
                #expect(resent.last { $0.oplogID == 2 }?.attempts == 3 && resent.last?.oplogID == 3)
            }
        }
    }

    @Test("a re-read restarts a dead letter's ladder, restores removed oplogs, and leaves confirmed ones")
    func reread() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 3], after: 0, upto: 9)
                var reader = app.client.allOplogs().makeAsyncIterator()
                _ = try await wholeLadders(of: [1, 3], &reader)
                var dead: Set<Int64> = []
                while dead != [1, 3] { dead.formUnion(try await session.recordResends().filter(\.dead).map(\.oplogID)) }
                session.push([10], after: 9, upto: 10)
                let ten = try await next(&reader)
                try await app.client.confirm(ten)
                session.push([1, 2, 10], after: 0, upto: 0, reread: 77)
                var ack = try await session.nextAck()
                while ack.rereads.isEmpty { ack = try await session.nextAck() }
                #expect(ack.rereads == [77] && ack.channels.isEmpty)
                let shown = try await wholeLadders(of: [1, 2], &reader)
                #expect(shown.allSatisfy(\.isReplay) && Set(shown.map(\.oplogID)) == [1, 2])
                for id in Int64(1)...2 {
                    #expect(shown.filter { $0.oplogID == id }.map(\.attempt) == Array(1...7))
                }
                // The sync point has not changed.
                session.push([11], after: 10, upto: 11)
                let eleven = try await next(&reader)
                #expect(eleven.oplogID == 11 && !eleven.isReplay)
            }
        }
    }

    @Test("a recalled oplog: both are dropped when the app has not seen it, also when it was read ahead")
    func recalledUnseen() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3)
                var reader = app.client.allOplogs().makeAsyncIterator()
                #expect(try await next(&reader).oplogID == 1)
                session.push([4, 5, 6, 7], after: 3, upto: 7, recalling: [4: 2, 6: 5])
                while try await session.nextStored().map(\.upto) != [7] {}
                #expect(try await next(&reader).oplogID == 3)
                #expect(try await next(&reader).oplogID == 7)
            }
        }
    }

    @Test("a recalled oplog that the app has comes no more, and the app gets the tombstone")
    func recalledSeen() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store, firstResend: firstResend)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2], after: 0, upto: 2)
                var reader = app.client.allOplogs().makeAsyncIterator()
                try await app.client.confirm(try await next(&reader))
                let report = try await session.nextReport()
                session.send(.with { $0.confirmRecorded.reportID = report.reportID })
                #expect(try await next(&reader).oplogID == 2)
                session.push([3, 4], after: 2, upto: 4, recalling: [3: 2, 4: 1])
                var oplog = try await next(&reader)
                // Skips resends of 2 that came before the tombstones.
                while oplog.oplogID == 2 { oplog = try await next(&reader) }
                #expect(oplog.oplogID == 3 && oplog.recalls == 2 && oplog.payload.isEmpty)
                oplog = try await next(&reader)
                var shown = [oplog]
                while shown.last?.oplogID != 4 || shown.last?.attempt != 7 { shown.append(try await next(&reader)) }
                #expect(shown.allSatisfy { $0.oplogID == 3 || $0.recalls == 1 })
            }
        }
    }
}
