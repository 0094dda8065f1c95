import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

@Suite("Client library: conversations, against a test gateway", .timeLimit(.minutes(5)))
struct SyncClientConversationTests {
    /// Sends a page of the conversation's history, as a server with these ids would.
    private static func answer(
        _ request: Mss_Device_V1_HistoryRequest, with ids: [Int64], head: Int64, on session: FakeGateway.Session
    ) {
        session.send(
            .with {
                $0.historyPage.requestNumber = request.requestNumber
                $0.historyPage.bindNumber = 1
                $0.historyPage.head = head
                $0.historyPage.entries = ids.map { id in
                    .with {
                        $0.oplogID = id
                        $0.payload = Data("\(id)".utf8)
                        $0.conversation = request.conversation
                    }
                }
            })
    }

    private static func nextSummaryRequest(
        _ session: FakeGateway.Session
    ) async throws -> Mss_Device_V1_SummaryRequest {
        try await session.next { packet in
            if case .summaryRequest(let request)? = packet.body { request } else { nil }
        }
    }

    /// Sends a page of conversations, each with the id of its newest oplog.
    private static func answer(
        _ request: Mss_Device_V1_SummaryRequest, with rows: [(name: String, last: Int64, waiting: UInt32)],
        next: String = "", on session: FakeGateway.Session
    ) {
        session.send(
            .with {
                $0.summaryPage.requestNumber = request.requestNumber
                $0.summaryPage.bindNumber = 1
                $0.summaryPage.more = !next.isEmpty
                $0.summaryPage.nextConversation = next
                $0.summaryPage.channels = rows.map { row in
                    .with {
                        $0.bizType = "B"
                        $0.conversation = row.name
                        $0.last.oplogID = row.last
                        $0.last.conversation = row.name
                        $0.waiting = row.waiting
                    }
                }
            })
    }

    @Test("D19: the history of a conversation has its oplogs only, and closes no gap of the whole history")
    func history() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([6], after: 0, upto: 6, passedOver: 5, conversation: "chat")
                session.push([7], after: 6, upto: 7, conversation: "case")
                session.push([8], after: 7, upto: 8)
                session.push([9], after: 8, upto: 9, conversation: "chat")
                try await app.shows([6, 7, 8, 9])
                #expect(app.oplogs.map(\.conversation) == ["chat", "case", nil, "chat"])
                let two = try await app.client.history(of: "B", conversation: "chat", count: 2)
                #expect(two.oplogs.map(\.oplogID) == [9, 6] && two.isComplete)
                let local = try await app.client.localHistory(of: "B", conversation: "case")
                #expect(local.oplogs.map(\.oplogID) == [7] && local.isComplete && local.hasMore)
                async let older = app.client.history(of: "B", conversation: "chat", before: 6)
                let request = try await session.nextRequest()
                #expect(request.conversation == "chat" && request.before == 6 && request.bizType == "B")
                Self.answer(request, with: [4, 2], head: 9, on: session)
                let found = try await older
                #expect(found.oplogs.map(\.oplogID) == [4, 2] && !found.hasMore)
                #expect(found.oplogs.map(\.conversation) == ["chat", "chat"])
                // The page lacks 1, 3 and 5, so the whole history still asks for them.
                async let all = app.client.history(of: "B", before: 6)
                let whole = try await session.nextRequest()
                #expect(whole.conversation.isEmpty && whole.before == 6)
                session.answer(whole, holding: 1...9)
                #expect(try await all.oplogs.map(\.oplogID) == [5, 4, 3, 2, 1])
            }
            // Both are on the device now.
            let chat = try await app.client.localHistory(of: "B", conversation: "chat")
            #expect(chat.oplogs.map(\.oplogID) == [9, 6, 4, 2] && chat.isComplete && !chat.hasMore)
        }
    }

    @Test("D19: conversations combine the server's and the device's, newest first; a read mark survives a restart")
    func conversations() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1, 2, 3], after: 0, upto: 3, conversation: "chat")
                session.push([4], after: 3, upto: 4, conversation: "case")
                session.push([5], after: 4, upto: 5)
                try await app.shows([1, 2, 3, 4, 5])
                try await app.client.markRead("chat", of: "B", upTo: 2)
                try await app.client.markRead("chat", of: "B", upTo: 1)
                try await app.client.markRead("chat", of: "NONE", upTo: 1)
                async let list = app.client.conversations(of: "B")
                let first = try await Self.nextSummaryRequest(session)
                #expect(first.conversationsOf == "B" && first.afterConversation.isEmpty && first.count == 16)
                Self.answer(first, with: [("bank", 9, 1)], next: "bank", on: session)
                let second = try await Self.nextSummaryRequest(session)
                #expect(second.afterConversation == "bank")
                Self.answer(second, with: [], next: "c", on: session)
                let third = try await Self.nextSummaryRequest(session)
                #expect(third.afterConversation == "c")
                Self.answer(third, with: [("chat", 8, 2)], on: session)
                let found = try await list
                #expect(found.map(\.name) == ["bank", "chat", "case"])
                #expect(found.map(\.last.oplogID) == [9, 8, 4])
                #expect(found.map(\.unread) == [0, 1, 1] && found.map(\.notReceived) == [1, 2, 0])
                session.push([6], after: 5, upto: 6, recalling: [6: 4])
                try await app.shows([1, 2, 3, 4, 5, 6])
            }
            // Without a gateway: the device's alone. The only oplog of the case was recalled.
            let again = try ClientApp(port: gateway.port, store: store)
            let here = try await again.client.conversations(of: "B")
            #expect(here.map(\.name) == ["chat"] && here[0].last.oplogID == 3 && here[0].unread == 1)
            #expect(here[0].notReceived == nil)
            try await again.client.markRead("chat", of: "B", upTo: 3)
            #expect(try await again.client.conversations(of: "B").map(\.unread) == [0])
            #expect(try await again.client.conversations(of: "NONE").isEmpty)
            // Deleted data takes its mark along.
            try await again.client.markRead("chat", of: "B", upTo: 100)
            try await again.client.unsubscribe("B")
            try await again.client.resume("B")
            try await again.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([7], after: 6, upto: 7, conversation: "chat")
                try await again.shows([7])
            }
            #expect(try await again.client.conversations(of: "B").map(\.unread) == [1])
        }
    }

    @Test("D19: oplogs of a page above the local range do not hide those below, and the server is asked again")
    func aboveTheRange() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await eventually("connected", within: .seconds(5)) { app.client.status == .connected }
                async let chat = app.client.history(of: "B", conversation: "chat", count: 2)
                Self.answer(try await session.nextRequest(), with: [90, 89], head: 99, on: session)
                #expect(try await chat.oplogs.map(\.oplogID) == [90, 89])
                session.push([1, 2], after: 0, upto: 2, conversation: "chat")
                try await app.shows([1, 2])
                async let again = app.client.history(of: "B", conversation: "chat", count: 2)
                let request = try await session.nextRequest()
                #expect(request.before == 0 && request.count == 2)
                Self.answer(request, with: [90, 89], head: 99, on: session)
                #expect(try await again.oplogs.map(\.oplogID) == [90, 89])
            }
            let offline = try await app.client.history(of: "B", count: 3)
            #expect(offline.oplogs.map(\.oplogID) == [90, 89, 2] && !offline.isComplete && offline.hasMore)
        }
    }

    @Test("D19: names that differ only in their bytes are two conversations, and their pages go on")
    func equivalentNames() async throws {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1, conversation: composed)
                session.push([2], after: 1, upto: 2, conversation: decomposed)
                try await app.shows([1, 2])
                async let list = app.client.conversations(of: "B")
                let first = try await Self.nextSummaryRequest(session)
                Self.answer(first, with: [(decomposed, 2, 0)], next: decomposed, on: session)
                let second = try await Self.nextSummaryRequest(session)
                Self.answer(second, with: [(composed, 1, 0)], next: composed, on: session)
                let third = try await Self.nextSummaryRequest(session)
                // Pages that begin again would never end.
                Self.answer(third, with: [], next: decomposed, on: session)
                let found = try await list
                #expect(found.map(\.last.oplogID) == [2, 1] && found.map(\.notReceived) == [0, 0])
            }
        }
    }

    private static func refuses(_ call: () async throws -> Void) async -> Bool {
        do {
            try await call()
            return false
        } catch {
            return (error as? SyncError)?.code == .invalidArgument
        }
    }

    @Test("D19: a conversation has 1 to 100 characters without NUL, or the call is refused with words")
    func arguments() async throws {
        try await FakeGateway.withStore { gateway, store in
            let client = try ClientApp(port: gateway.port, store: store).client
            for name in ["", "a\0", String(repeating: "c", count: 101)] {
                #expect(await Self.refuses { _ = try await client.history(of: "B", conversation: name) })
                #expect(await Self.refuses { _ = try await client.localHistory(of: "B", conversation: name) })
                #expect(await Self.refuses { try await client.markRead(name, of: "B", upTo: 1) })
            }
        }
    }

    @Test("D19: the list of one user is not returned after another one was bound, whatever the gateway answers")
    func otherUser() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1, conversation: "chat")
                try await app.shows([1])
                async let list = app.client.conversations(of: "B")
                let request = try await Self.nextSummaryRequest(session)
                try app.client.bind(userID: "other", sessionID: "s")
                session.send(
                    .with {
                        $0.summaryPage.requestNumber = request.requestNumber
                        $0.summaryPage.refusal = .invalid
                    })
                do {
                    Issue.record("it gave \(try await list)")
                } catch {
                    #expect((error as? SyncError)?.code == .notEligible)
                }
            }
        }
    }

    @Test("D19: pages of a conversation on a new store are not taken for the whole history")
    func emptyStore() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                try await eventually("connected", within: .seconds(5)) { app.client.status == .connected }
                async let chat = app.client.history(of: "B", conversation: "chat")
                Self.answer(try await session.nextRequest(), with: [5, 2], head: 6, on: session)
                #expect(try await chat.oplogs.map(\.oplogID) == [5, 2])
                async let all = app.client.history(of: "B", count: 4)
                let request = try await session.nextRequest()
                #expect(request.before == 0 && request.count == 4)
                session.answer(request, holding: 1...6)
                #expect(try await all.oplogs.map(\.oplogID) == [6, 5, 4, 3])
            }
        }
    }

    @Test("D19: of a Sync ID that the gateway refuses, the conversations on the device are listed")
    func refused() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running {
                let session = try await gateway.accept()
                _ = try await session.greet()
                session.push([1], after: 0, upto: 1, conversation: "chat")
                try await app.shows([1])
                async let list = app.client.conversations(of: "B")
                let request = try await Self.nextSummaryRequest(session)
                session.send(
                    .with {
                        $0.summaryPage.requestNumber = request.requestNumber
                        $0.summaryPage.refusal = .notEligible
                    })
                #expect(try await list.map(\.name) == ["chat"])
                #expect(try await list.map(\.notReceived) == [nil])
            }
        }
    }
}
