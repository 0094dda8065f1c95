import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel
import Testing

@testable import MobileSync

@Suite("SyncClient: the local store") struct LocalStoreTests {
    /// Runs the body with a function that opens the same store each time.
    private func withStore(_ body: (() throws -> (LocalStore, HandOutSelector)) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "store-\(UUID().uuidString).sqlite"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        try body {
            let store = try LocalStore(path: path, instanceID: "app", deviceID: "d")
            return (store, HandOutSelector(channels: try store.startOver()))
        }
    }

    private func batch(
        _ ids: [Int64], after: Int64 = 0, upto: Int64 = 0, reread: UInt64 = 0
    ) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.kind = .device
            $0.bizType = "B"
            $0.after = after
            $0.upto = upto
            $0.reread = reread
            $0.entries = ids.map { id in .with { $0.oplogID = id } }
        }
    }

    private func store(
        _ batches: [Mss_Device_V1_ChannelBatch], in store: LocalStore, _ handOut: inout HandOutSelector
    ) throws -> StoreOutcome {
        let outcome = try store.store(batches, userID: nil, bindNumber: 0)
        handOut.markUnread(outcome.filledChannels)
        return outcome
    }

    @Test("an app that ends before it confirms is given an oplog 50 times, and then it is dead") func crashLoop() throws
    {
        try withStore { open in
            do {
                var (local, handOut) = try open()
                _ = try store([batch([1, 2], upto: 2)], in: local, &handOut)
            }
            for attempt in 1...Limits.resendHandOuts {
                var (local, handOut) = try open()
                #expect(try handOut.next(of: nil, userID: nil, from: local)?.attempt == attempt)
            }
            var (local, handOut) = try open()
            let next = try handOut.next(of: nil, userID: nil, from: local)
            #expect(next?.oplogID == 2 && next?.attempt == 1, "what was never given out is not counted")
            #expect(try handOut.next(of: nil, userID: nil, from: local) == nil)
            let report = try local.unreported.report(ofUser: nil, bindNumber: 0)
            #expect(report.resent.map(\.oplogID) == [1] && report.resent.map(\.attempts) == [50])
            #expect(report.resent.map(\.dead) == [true] && report.confirmed.isEmpty)
        }
    }

    @Test("K4: a re-read whose acknowledgement was lost is acknowledged again, and the app does not see it again")
    func knownReread() throws {
        try withStore { open in
            var (local, handOut) = try open()
            _ = try store([batch([1], upto: 1)], in: local, &handOut)
            #expect(try store([batch([1], reread: 7)], in: local, &handOut).rereads == [7])
            #expect(try handOut.next(of: nil, userID: nil, from: local)?.oplogID == 1)
            #expect(try store([batch([1], reread: 7)], in: local, &handOut).rereads == [7])
            #expect(try handOut.next(of: nil, userID: nil, from: local) == nil)
            #expect(try store([batch([1], reread: 8)], in: local, &handOut).rereads == [8])
            let oplog = try #require(try handOut.next(of: nil, userID: nil, from: local), "another number is another")
            try local.oplogs.confirm([oplog])
            #expect(try store([batch([1], reread: 9)], in: local, &handOut).rereads == [9])
            #expect(try handOut.next(of: nil, userID: nil, from: local) == nil, "the app has done with it")
        }
    }

    @Test("K2, D11: oplogs that expired while they waited are not handed out, and lists still have them")
    func expired() throws {
        try withStore { open in
            do {
                var (local, handOut) = try open()
                let now = Int64(Date().timeIntervalSince1970 * 1_000)
                var batch = batch([1, 2, 3], upto: 3)
                batch.entries[0].validUntilMs = now - 1
                batch.entries[1].validUntilMs = now + 60_000
                _ = try store([batch], in: local, &handOut)
                try local.clock.setServiceTime(WallTime(milliseconds: now))
                #expect(try handOut.next(of: nil, userID: nil, from: local)?.oplogID == 2)
                try local.clock.setServiceTime(WallTime(milliseconds: now + 3_600_000))
            }
            // A new process uses the stored values of the last one.
            var (again, anew) = try open()
            #expect(try anew.next(of: nil, userID: nil, from: again)?.oplogID == 2, "the app has been given it before")
            #expect(try anew.next(of: nil, userID: nil, from: again)?.oplogID == 3, "nobody has said an end")
            #expect(try anew.next(of: nil, userID: nil, from: again) == nil)
            let channel = try #require(again.channels.all(visibleTo: nil).first)
            #expect(try again.oplogs.history(of: channel, nil, before: nil, limit: 9).map(\.oplogID) == [3, 2, 1])
            #expect(try again.oplogs.unconfirmed(in: channel) == 2)
        }
    }

    @Test("a report has at most 500 items, and the next has the rest") func longReports() throws {
        try withStore { open in
            var (local, handOut) = try open()
            _ = try store([batch(Array(1...600), upto: 600)], in: local, &handOut)
            var oplogs: [SyncOplog] = []
            while let oplog = try handOut.next(of: nil, userID: nil, from: local) { oplogs.append(oplog) }
            #expect(oplogs.map(\.oplogID) == Array(1...600))
            // The first hundred were also resent, so each has two items.
            for oplog in oplogs.prefix(100) {
                let channel = try #require(local.channels.channel(row: oplog.channelRow))
                #expect(try local.oplogs.handOut(oplog.oplogID, of: channel, isRepeat: true)?.attempt == 2)
            }
            try local.oplogs.confirm(oplogs)
            let first = try local.unreported.report(ofUser: nil, bindNumber: 0)
            #expect(first.confirmed.flatMap(\.oplogIds) == Array(1...400) && first.resent.count == 100)
            #expect(first.resent.allSatisfy { $0.attempts == 2 && !$0.dead })
            try local.unreported.recorded(first, ofUser: nil)
            let second = try local.unreported.report(ofUser: nil, bindNumber: 0)
            #expect(second.confirmed.flatMap(\.oplogIds) == Array(401...600) && second.resent.isEmpty)
            try local.unreported.recorded(second, ofUser: nil)
            #expect(try local.unreported.report(ofUser: nil, bindNumber: 0).isEmpty)
        }
    }

    @Test("changes after a report are reported again") func lateChanges() throws {
        try withStore { open in
            var (local, handOut) = try open()
            _ = try store([batch([1, 2], upto: 2)], in: local, &handOut)
            let one = try #require(try handOut.next(of: nil, userID: nil, from: local))
            let two = try #require(try handOut.next(of: nil, userID: nil, from: local))
            let channel = try #require(local.channels.channel(row: one.channelRow))
            for id in [one.oplogID, two.oplogID] { _ = try local.oplogs.handOut(id, of: channel, isRepeat: true) }
            let report = try local.unreported.report(ofUser: nil, bindNumber: 0)
            #expect(report.resent.map(\.attempts) == [2, 2])
            try local.oplogs.confirm([one])
            _ = try local.oplogs.handOut(2, of: channel, isRepeat: true)
            try local.unreported.recorded(report, ofUser: nil)
            let again = try local.unreported.report(ofUser: nil, bindNumber: 0)
            #expect(again.confirmed.flatMap(\.oplogIds) == [1] && again.resent.map(\.attempts) == [2, 3])
            try local.unreported.recorded(again, ofUser: nil)
            #expect(try local.unreported.report(ofUser: nil, bindNumber: 0).isEmpty)
        }
    }

    @Test("a re-read above the sync point that the app confirmed does not come again with the channel's own batch")
    func rereadAhead() throws {
        try withStore { open in
            var (local, handOut) = try open()
            #expect(try store([batch([5], reread: 9)], in: local, &handOut).rereads == [9])
            let five = try #require(try handOut.next(of: nil, userID: nil, from: local))
            #expect(five.oplogID == 5 && five.isReplay)
            try local.oplogs.confirm([five])
            try local.unreported.recorded(try local.unreported.report(ofUser: nil, bindNumber: 0), ofUser: nil)
            let outcome = try store([batch([4, 5, 6], upto: 6)], in: local, &handOut)
            #expect(outcome.acknowledgements.map(\.upto) == [6] && outcome.rereads.isEmpty)
            #expect(try handOut.next(of: nil, userID: nil, from: local)?.oplogID == 4)
            #expect(try handOut.next(of: nil, userID: nil, from: local)?.oplogID == 6)
            #expect(try handOut.next(of: nil, userID: nil, from: local) == nil)
            #expect(try local.unreported.report(ofUser: nil, bindNumber: 0).isEmpty)
        }
    }
}
