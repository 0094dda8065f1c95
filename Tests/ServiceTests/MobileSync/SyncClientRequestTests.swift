import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@Suite(
    "Client library: lists, subscriptions and requests, against a test gateway", .timeLimit(.minutes(5)))
struct SyncClientRequestTests {
    // MARK: History

    @Test("a list comes from the local store, and from the server where that ends; then it needs no server")
    func history() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([8, 9, 10], after: 0, upto: 10, passedOver: 7)
                try await app.shows([8, 9, 10])
                try await app.client.confirm(app.oplogs)
                let here = try await app.client.history(of: "B", count: 2)
                #expect(here.oplogs.map(\.oplogID) == [10, 9] && here.hasMore && here.isComplete)
                async let older = app.client.history(of: "B", before: 9, count: 4)
                let request = try await session.nextRequest()
                #expect(request.before == 8 && request.count == 3 && !request.oldestFirst && request.bizType == "B")
                session.answer(request, holding: 1...10)
                #expect(try await older.oplogs.map(\.oplogID) == [8, 7, 6, 5])
                async let rest = app.client.history(of: "B", before: 5, count: 100)
                let last = try await session.nextRequest()
                #expect(last.before == 5)
                session.answer(last, holding: 1...10)
                #expect(try await rest.oplogs.map(\.oplogID) == [4, 3, 2, 1])
                #expect(try await rest.hasMore == false)
            }
            // Without a gateway: all data is in the local store.
            let all = try await app.client.history(of: "B", count: 100)
            #expect(all.oplogs.map(\.oplogID) == Array((1...10).reversed()) && !all.hasMore && all.isComplete)
            #expect(all.oplogs.map(\.text) == (1...10).reversed().map { "\($0)" })
            #expect(app.ids == [8, 9, 10], "a list hands nothing out")
        }
    }

    @Test("the local history needs no server, and says whether it has gaps and whether there can be more")
    func localHistory() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            let none = try await app.client.localHistory(of: "B")
            #expect(none.oplogs.isEmpty && none.hasMore && none.isComplete)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([8, 9, 10], after: 0, upto: 10, passedOver: 7)
                try await app.shows([8, 9, 10])
                let two = try await app.client.localHistory(of: "B", count: 2)
                #expect(two.oplogs.map(\.oplogID) == [10, 9] && two.hasMore && two.isComplete)
                let rest = try await app.client.localHistory(of: "B", before: 9)
                #expect(rest.oplogs.map(\.oplogID) == [8] && rest.hasMore && rest.isComplete)
                async let older = app.client.history(of: "B", before: 5, count: 2)
                session.answer(try await session.nextRequest(), holding: 1...10)
                #expect(try await older.oplogs.map(\.oplogID) == [4, 3])
                let all = try await app.client.localHistory(of: "B")
                #expect(all.oplogs.map(\.oplogID) == [10, 9, 8, 4, 3] && !all.isComplete)
            }
        }
    }

    @Test("a new store restores a list from the server, and a push of the same oplog still reaches the app")
    func restore() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await eventually("connected", within: .seconds(5)) { app.client.status == .connected }
                async let list = app.client.history(of: "B", count: 3)
                let request = try await session.nextRequest()
                #expect(request.before == 0)
                session.answer(request, holding: 1...6)
                #expect(try await list.oplogs.map(\.oplogID) == [6, 5, 4])
                session.push([6, 7], after: 0, upto: 7, passedOver: 5)
                try await app.shows([6, 7])
                let again = try await app.client.history(of: "B", count: 4)
                #expect(again.oplogs.map(\.oplogID) == [7, 6, 5, 4] && again.isComplete)
            }
        }
    }

    @Test("without a connection a list has the local data, and says that more can be missing") func offline()
        async throws
    {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([8, 9], after: 0, upto: 9, passedOver: 7)
                try await app.shows([8, 9])
            }
            let list = try await app.client.history(of: "B", count: 5)
            #expect(list.oplogs.map(\.oplogID) == [9, 8] && list.hasMore && !list.isComplete)
        }
    }

    @Test("a list that begins above the local data does not use it, and says that data is missing")
    func above() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3)
                try await app.shows([1, 2, 3])
            }
            let list = try await app.client.history(of: "B", before: 10, count: 2)
            #expect(list.oplogs.map(\.oplogID) == [3, 2] && !list.isComplete)
            let next = try await app.client.history(of: "B", before: 4, count: 2)
            #expect(next.oplogs.map(\.oplogID) == [3, 2] && next.isComplete)
        }
    }

    @Test("data that the gateway refuses is an error with a reason") func refused() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await eventually("connected", within: .seconds(5)) { app.client.status == .connected }
                async let list = app.client.history(of: "B")
                let request = try await session.nextRequest()
                session.send(
                    .with {
                        $0.historyPage.requestNumber = request.requestNumber
                        $0.historyPage.refusal = .notEligible
                    })
                do {
                    Issue.record("it gave \(try await list)")
                } catch {
                    #expect((error as? SyncError)?.code == .notEligible)
                }
            }
        }
    }

    @Test("a tombstone takes an oplog out of the list, also one that the app has confirmed") func recalled()
        async throws
    {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3)
                try await app.shows([1, 2, 3])
                try await app.client.confirm(app.oplogs)
                session.push([4], after: 3, upto: 4, recalling: [4: 2])
                try await app.shows([1, 2, 3, 4])
                #expect(app.oplogs.last?.recalls == 2)
                #expect(try await app.client.history(of: "B").oplogs.map(\.oplogID) == [3, 1])
            }
        }
    }

    @Test("a summary combines the server's and the local store's data, page by page") func summary() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2], after: 0, upto: 2)
                try await app.shows([1, 2])
                try await app.client.confirm(Array(app.oplogs.prefix(1)))
                async let summaries = app.client.channelSummaries()
                for (bizType, head, more) in [("A", Int64(7), true), ("B", 3, false)] {
                    let request = try await session.next { packet -> Mss_Device_V1_SummaryRequest? in
                        if case .summaryRequest(let request)? = packet.body { request } else { nil }
                    }
                    #expect(request.afterBizType == (more ? "" : "A"))
                    session.send(
                        .with {
                            $0.summaryPage.requestNumber = request.requestNumber
                            $0.summaryPage.more = more
                            $0.summaryPage.channels = [
                                .with {
                                    $0.bizType = bizType
                                    $0.head = head
                                    $0.last.oplogID = head
                                    $0.waiting = 1
                                }
                            ]
                        })
                }
                let found = try await summaries
                #expect(found.map(\.bizType) == ["A", "B"] && found.map(\.last?.oplogID) == [7, 3])
                #expect(found.map(\.unconfirmed) == [0, 1] && found.map(\.notReceived) == [1, 1])
            }
            let here = try await app.client.channelSummaries()
            #expect(here.map(\.bizType) == ["B"] && here[0].last?.oplogID == 2 && here[0].notReceived == nil)
        }
    }

    // MARK: Subscriptions

    @Test("recover brings everything again, flagged, confirmed or not, and goes on after a restart in the middle")
    func recover() async throws {
        try await FakeGateway.withStore { gateway, store in
            let first = try ClientApp(port: gateway.port, store: store)
            try await first.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push(Array(1...150), after: 0, upto: 150)
                try await first.shows(Array(1...150))
                try await first.client.confirm(first.oplogs)
                try await first.client.recover("B")
                // The report of confirmations comes first.
                let report = try await session.nextReport()
                #expect(report.channels.flatMap(\.oplogIds) == Array(1...150))
                session.send(.with { $0.confirmRecorded.reportID = report.reportID })
                let request = try await session.nextRequest()
                #expect(request.oldestFirst && request.after == 0 && request.count == 100)
                session.answer(request, holding: 1...150)
                let next = try await session.nextRequest()
                #expect(next.after == 100 && next.before == 151)
            }
            let second = try ClientApp(port: gateway.port, store: store)
            try await second.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                let request = try await session.nextRequest()
                #expect(request.after == 100 && request.before == 151)
                session.answer(request, holding: 1...160)
                try await eventually("all are here again", within: .seconds(30)) {
                    Set((first.oplogs.dropFirst(150) + second.oplogs).map(\.oplogID)) == Set(1...150)
                }
                #expect(second.oplogs.map(\.isReplay).contains(false) == false)
            }
        }
    }

    @Test("a suspended Sync ID is sent to the gateway, now and on every connection, and local data waits")
    func suspend() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                try await app.client.suspend("B")
                let suspended = { (packet: Mss_Device_V1_Packet) -> [String]? in
                    if case .subscriptions(let list)? = packet.body { list.suspended } else { nil }
                }
                #expect(try await first.next(suspended) == ["B"])
                // The push was in flight at the same time as the list.
                first.push([1], after: 0, upto: 1)
                #expect(try await first.nextStored().map(\.upto) == [1])
                first.cut()
                let second = try await gateway.accept()
                #expect(try await second.greet().suspended == ["B"])
                #expect(app.ids == [])
                try await app.client.resume("B")
                #expect(try await second.next(suspended) == [])
                try await app.shows([1])
            }
        }
    }

    @Test("unsubscribe deletes the local data, and the sync point stays") func unsubscribe() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.push([1, 2], after: 0, upto: 2)
                try await app.shows([1, 2])
                try await app.client.unsubscribe("B")
                app.client.disconnect()
                try await first.ended()
                #expect(try await app.client.channelSummaries().compactMap(\.last) == [])
                app.client.connect()
                let connect = try await gateway.accept().greet()
                #expect(connect.suspended == ["B"] && connect.bind.syncPoints.map(\.oplogID) == [2])
            }
        }
    }

    // MARK: Wishes

    @Test("disconnect ends the connection with a Close, connect opens it at once") func disconnect() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                app.client.disconnect()
                let code = try await first.next { packet -> UInt32? in
                    if case .close(let close)? = packet.body { close.code } else { nil }
                }
                #expect(code == CloseCode.normal.rawValue)
                try await eventually("not connected", within: .seconds(5)) { app.client.status == .notAvailable }
                app.client.connect()
                _ = try await gateway.accept().greet()
            }
        }
    }

    @Test("K1: in the background the connection is kept as long as the configuration says") func background()
        async throws
    {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store) { $0.backgroundTime = .seconds(2) }
            try await app.running {
                let first = try await gateway.accept()
                #expect(try await first.greet().background == false)
                app.client.setForeground(false)
                let foreground = { (packet: Mss_Device_V1_Packet) -> Bool? in
                    if case .foreground(let state)? = packet.body { state.foreground } else { nil }
                }
                #expect(try await first.next(foreground) == false)
                try await first.ended()
                app.client.setForeground(true)
                #expect(try await gateway.accept().greet().background == false)
            }
        }
    }

    @Test("K9: without a network there is no attempt; on another the connection is made anew") func network()
        async throws
    {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            app.client.networkChanged(to: NetworkPath(isAvailable: false))
            try await app.running {
                app.client.networkChanged(to: NetworkPath(isAvailable: true, name: "wifi"))
                let first = try await gateway.accept()
                _ = try await first.greet()
                app.client.networkChanged(to: NetworkPath(isAvailable: true, name: "cellular"))
                try await first.ended()
                _ = try await gateway.accept().greet()
                try await eventually("connected", within: .seconds(5)) { app.client.status == .connected }
            }
        }
    }

    @Test("steps of a synchronisation are reported in order; cancel ends the connection until the app wants one")
    func steps() async throws {
        try await FakeGateway.withStore { gateway, store in
            let told = Mutex<[SyncStep]>([])
            let app = try ClientApp(port: gateway.port, store: store) {
                $0.onSynchronize = { step in
                    told.withLock { told in
                        told.append(step)
                        return step == .downloading && told.count(where: { $0 == .starting }) == 2 ? .cancel : .proceed
                    }
                }
            }
            try await app.running {
                let first = try await gateway.accept()
                _ = try await first.greet()
                first.push([1], after: 0, upto: 1)
                first.send(.with { $0.caughtUp.bindNumber = 1 })
                try await eventually("caught up", within: .seconds(5)) { app.client.isCaughtUp }
                #expect(told.withLock { $0 } == [.starting, .uploading, .downloading, .finishing])
                first.cut()
                let second = try await gateway.accept()
                _ = try await second.greet()
                second.push([2], after: 1, upto: 2)
                try await second.ended()
                try await eventually("it rests", within: .seconds(5)) { app.client.status == .notAvailable }
                #expect(told.withLock { $0.last } == .error(reason: "the connection ended"))
                app.client.connect()
                _ = try await gateway.accept().greet()
            }
        }
    }
}
