import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

@Suite("Client library: observation, against a test gateway", .timeLimit(.minutes(5)))
struct SyncClientObservationTests {
    /// Reads lists until one fulfils the condition.
    private func wait(
        _ lists: inout SyncOplogObservation.AsyncIterator, until condition: (SyncOplogList) -> Bool
    ) async throws {
        while let list = try await lists.next() { if condition(list) { return } }
        throw Failure("the observation has ended")
    }

    @Test("observe gives the list now, and again after arrivals, confirmations, recalls and another user")
    func states() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            var lists = app.client.observe("B", count: 3).makeAsyncIterator()
            #expect(try await lists.next() == SyncOplogList(items: [], unconfirmed: 0))
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3, 4], after: 0, upto: 4)
                try await wait(&lists) { $0.items.map(\.oplog.oplogID) == [4, 3, 2] && $0.unconfirmed == 4 }
                try await app.shows([1, 2, 3, 4])
                try await app.client.confirm(Array(app.oplogs.suffix(1)))
                try await wait(&lists) { $0.items.map(\.isConfirmed) == [true, false, false] && $0.unconfirmed == 3 }
                session.push([5], after: 4, upto: 5, recalling: [5: 3])
                try await wait(&lists) { $0.items.map(\.oplog.oplogID) == [4, 2, 1] }
                try app.client.bind(userID: "other", sessionID: "s")
                try await wait(&lists) { $0.items.isEmpty }
                try app.client.bind(userID: "u", sessionID: "s")
                try await wait(&lists) { $0.items.count == 3 }
                try await app.client.unsubscribe("B")
                try await wait(&lists) { $0.items.allSatisfy(\.isConfirmed) }
            }
        }
    }

    @Test("an observation neither hands out nor counts as a reader, and ends when its task is cancelled")
    func passive() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running(reads: false) {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1)
                let (seen, signal) = AsyncStream.makeStream(of: Int.self)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for try await list in app.client.observe("B") { signal.yield(list.items.count) }
                    }
                    for await count in seen where count == 1 { break }
                    group.cancelAll()
                    try await group.waitForAll()
                }
                var oplogs = app.client.oplogs(of: "B").makeAsyncIterator()
                #expect(try await oplogs.next()?.attempt == 1)
            }
        }
    }
}
