import BusMessages
import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

@testable import Gateway

private typealias Bench = SessionBench

/// Requests of devices (DeviceProtocol.md, On demand).
@Suite("Gateway: history and summary")
struct SessionRequestTests {
    private static func history(
        _ bizType: String = "B", number: UInt32 = 1, bind: UInt32 = 1, on bench: inout Bench,
        _ more: (inout Mss_Device_V1_HistoryRequest) -> Void = { _ in }
    ) -> [SessionAction] {
        bench.receive {
            $0.historyRequest.requestNumber = number
            $0.historyRequest.bizType = bizType
            $0.historyRequest.bindNumber = bind
            $0.historyRequest.count = 10
            more(&$0.historyRequest)
        }
    }

    private static func summary(
        number: UInt32 = 1, bind: UInt32 = 1, count: UInt32 = 16, after: String = "", on bench: inout Bench
    ) -> [SessionAction] {
        bench.receive {
            $0.summaryRequest.requestNumber = number
            $0.summaryRequest.bindNumber = bind
            $0.summaryRequest.count = count
            $0.summaryRequest.afterBizType = after
        }
    }

    private static func page(_ ids: Int64..., more: Bool = false) -> Mss_Bus_V1_HistoryReply {
        .with {
            $0.entries = ids.map { Bench.oplog($0).bus }
            $0.more = more
            $0.next = more ? ids.last ?? 0 : 0
            $0.head = 10
        }
    }

    private static func standing(last: Int64?, waiting: UInt32 = 0) -> Mss_Bus_V1_ChannelStanding {
        .with {
            $0.head = 10
            $0.syncPoint = 4
            if let last { $0.last = Bench.oplog(last).bus }
            $0.waiting = waiting
        }
    }

    // MARK: States

    @Test("a request before Connect closes; while opening it must be repeated; after the end it is ignored")
    func states() {
        for ask in [{ Self.history(on: &$0) }, { Self.summary(on: &$0) }] as [(inout Bench) -> [SessionAction]] {
            var bench = Bench()
            #expect(ask(&bench).closeCode == .protocolViolation)
            #expect(ask(&bench).isEmpty)
        }
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
        }
        #expect(Self.history(on: &bench).historyPages.map(\.refusal) == [.tryAgain])
        #expect(Self.summary(on: &bench).summaryPages.map(\.refusal) == [.tryAgain])
        // A frame that only a gateway sends is ignored.
        #expect(bench.receive { $0.historyPage.requestNumber = 1 }.isEmpty)
        #expect(bench.receive { $0.summaryPage.requestNumber = 1 }.isEmpty)
    }

    @Test("a connection that ended answers nothing more")
    func endedMeanwhile() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        let read = try #require(Self.history(on: &bench).historyReads.first)
        bench.handle(.disconnected)
        #expect(bench.handle(.historyRead(Self.page(9), of: read.id)).isEmpty)
    }

    // MARK: History

    @Test("history is read as asked, and answered under its number, kind and bind")
    func answered() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        let asked = Self.history(number: 7, on: &bench) {
            $0.after = 2
            $0.before = 9
            $0.oldestFirst = true
        }
        let read = try #require(asked.historyReads.first)
        #expect(read.channelID == 3 && read.after == OplogID(2) && read.before == OplogID(9) && read.count == 10)
        #expect(read.isOldestFirst && read.onlyOwner == nil)
        let page = try #require(
            bench.handle(.historyRead(Self.page(3, 4, more: true), of: read.id)).historyPages.first)
        #expect(page.requestNumber == 7 && page.refusal == .none && page.kind == .user && page.bindNumber == 1)
        #expect(page.entries.map(\.oplogID) == [3, 4] && page.more && page.next == 4 && page.head == 10)
        #expect(bench.handle(.historyRead(Self.page(3), of: read.id)).isEmpty, "answered once")
    }

    @Test("a type without any oplog, whose channel does not exist, gives an empty page")
    func noChannel() {
        var bench = Bench()
        bench.open()
        let pages = Self.history(on: &bench).historyPages
        #expect(pages.map(\.refusal) == [.none] && pages[0].entries.isEmpty && !pages[0].more && pages[0].head == 0)
    }

    @Test("a request that breaks a limit, or belongs to an earlier bind, is invalid")
    func invalid() {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        func refusals(_ fill: (inout Mss_Device_V1_HistoryRequest) -> Void) -> [Mss_Device_V1_RequestRefusal] {
            Self.history(on: &bench, fill).historyPages.map(\.refusal)
        }
        #expect(refusals { $0.count = 0 } == [.invalid])
        #expect(refusals { $0.count = 101 } == [.invalid])
        #expect(refusals { $0.after = -1 } == [.invalid])
        #expect(refusals { $0.before = -1 } == [.invalid])
        #expect(refusals { $0.bindNumber = 2 } == [.invalid])
        #expect(refusals { $0.count = 100 } == [], "it is read")
        #expect(Self.summary(count: 0, on: &bench).summaryPages.map(\.refusal) == [.invalid])
        #expect(Self.summary(count: 17, on: &bench).summaryPages.map(\.refusal) == [.invalid])
        #expect(Self.summary(bind: 0, on: &bench).summaryPages.map(\.refusal) == [.invalid])
    }

    @Test("the rules of a push decide: configuration, suspension, owner, verdict, user, lease")
    func notEligible() {
        func refusals(
            _ configurations: [SyncConfiguration], _ change: (inout Bench) -> Void = { _ in }
        ) -> [Mss_Device_V1_RequestRefusal] {
            var bench = Bench(configurations)
            bench.open([("B", 3, 10, 4)])
            change(&bench)
            let bind = bench.machine.identity?.bindNumber ?? 0
            return Self.history(bind: bind, on: &bench).historyPages.map(\.refusal)
        }
        #expect(refusals([Bench.configuration("B")]) == [])
        #expect(refusals([]) == [.notEligible])
        var offline = Bench.configuration("B")
        offline.isOnline = false
        #expect(refusals([offline]) == [.notEligible])
        #expect(refusals([Bench.configuration("B", multiDevice: false)]) == [.notEligible])
        #expect(refusals([Bench.configuration("B", checks: true)]) == [.notEligible])
        let suspended = refusals([Bench.configuration("B")]) { bench in
            _ = bench.receive { $0.subscriptions.suspended = ["B"] }
        }
        #expect(suspended == [.notEligible])
        let unbound = refusals([Bench.configuration("B")]) { bench in
            _ = bench.receive { $0.bind.bindNumber = 2 }
            _ = bench.handle(.registered(Bench.reply([]), bindNumber: 2))
        }
        #expect(unbound == [.notEligible])
        #expect(refusals([Bench.configuration("B")]) { $0.holdsLease = false } == [.tryAgain])
        let binding = refusals([Bench.configuration("B")]) { bench in
            _ = bench.receive {
                $0.bind.bindNumber = 2
                $0.bind.userID = "v"
            }
        }
        #expect(binding == [.tryAgain], "nobody knows the user's channels yet")
    }

    @Test("data of a device needs no user and no bind")
    func deviceKind() throws {
        var bench = Bench([Bench.configuration("B", kind: .device)])
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
        }
        var reply = Bench.reply([("B", 3, 10, 10)])
        reply.channels[0].target = TargetAddress(instanceID: Bench.instance.id, kind: .device, target: "d").bus
        _ = bench.handle(.registered(reply, bindNumber: 0))
        let read = try #require(Self.history(bind: 0, on: &bench).historyReads.first)
        let pages = bench.handle(.historyRead(Self.page(9), of: read.id)).historyPages
        #expect(pages.map(\.kind) == [.device] && pages.map(\.bindNumber) == [0])
    }

    @Test("the rules are checked again when the page arrives, and pages of an earlier bind are dropped")
    func changedMeanwhile() throws {
        func refusal(
            _ reply: Mss_Bus_V1_HistoryReply? = Self.page(9), _ change: (inout Bench) -> Void
        ) throws -> Mss_Device_V1_RequestRefusal? {
            var bench = Bench()
            bench.open([("B", 3, 10, 4)])
            let read = try #require(Self.history(on: &bench).historyReads.first)
            change(&bench)
            let pages = bench.handle(.historyRead(reply, of: read.id)).historyPages
            #expect(pages.allSatisfy { $0.refusal == .none || $0.entries.isEmpty })
            return pages.first?.refusal
        }
        #expect(try refusal { _ in } == Mss_Device_V1_RequestRefusal.none)
        #expect(try refusal { bench in _ = bench.receive { $0.subscriptions.suspended = ["B"] } } == .notEligible)
        #expect(try refusal { $0.configurations = [:] } == .notEligible)
        #expect(try refusal { $0.holdsLease = false } == .tryAgain)
        #expect(try refusal(nil) { _ in } == .tryAgain)
        #expect(try refusal(.with { $0.notOwner = true }) { _ in } == .notEligible)
        let rebound = try refusal { bench in
            _ = bench.receive {
                $0.bind.bindNumber = 2
                $0.bind.userID = "v"
            }
        }
        #expect(rebound == .invalid)
    }

    @Test("a single-device channel is read under the owner's name")
    func owner() throws {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        var reply = Bench.reply([("B", 3, 10, 10)])
        _ = bench.open()
        reply.owner = true
        _ = bench.handle(.registered(reply, bindNumber: 1))
        let read = try #require(Self.history(on: &bench).historyReads.first)
        #expect(read.onlyOwner == DeviceID("d"))
        _ = bench.handle(.historyRead(.with { $0.notOwner = true }, of: read.id))
        #expect(Self.history(on: &bench).historyPages.map(\.refusal) == [.notEligible], "it knows now")
    }

    @Test("H7: an oplog that is recalled or expires while a page is in flight is not in it")
    func recalledMeanwhile() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)])
        let read = try #require(Self.history(on: &bench).historyReads.first)
        let summary = try #require(Self.summary(on: &bench).summaryReads.first)
        var tombstone = Bench.oplog(11)
        tombstone.recalls = OplogID(9)
        let notice = ChannelNotice(
            channelID: 3, address: ChannelAddress(target: Bench.target, bizType: BizType("B")), after: OplogID(10),
            upto: OplogID(11), entries: [tombstone], owner: nil)
        _ = bench.handle(.noticed(notice))
        var page = Self.page(8, 9, 10)
        page.entries[2].validUntilMs = 1
        let pages = bench.handle(.historyRead(page, of: read.id)).historyPages
        #expect(pages.first?.entries.map(\.oplogID) == [8])
        let standing = Mss_Bus_V1_SummaryReply.with { $0.channels = [Self.standing(last: 9)] }
        #expect(
            bench.handle(.summaryRead(standing, of: summary.id)).summaryPages.map(\.refusal)
                == [.tryAgain])
    }

    @Test("four requests may wait for their answers, of both kinds together; one more is to be asked again")
    func unanswered() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        let reads = (1...3).flatMap { Self.history(number: $0, on: &bench).historyReads }
        let summary = try #require(Self.summary(number: 4, on: &bench).summaryReads.first)
        #expect(reads.count == 3)
        #expect(Self.history(number: 5, on: &bench).historyPages.map(\.refusal) == [.tryAgain])
        #expect(Self.summary(number: 6, on: &bench).summaryPages.map(\.refusal) == [.tryAgain])
        // The replies arrive in another order than the requests.
        #expect(
            bench.handle(.historyRead(Self.page(9), of: reads[1].id)).historyPages[0].requestNumber
                == 2
        )
        #expect(Self.history(number: 7, on: &bench).historyReads.count == 1)
        #expect(
            bench.handle(.summaryRead(nil, of: summary.id)).summaryPages.map(\.refusal) == [.tryAgain]
        )
        #expect(Self.summary(number: 8, on: &bench).summaryReads.count == 1)
    }

    @Test("requests move no position, count in no window and hold up no push")
    func pushesGoOn() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)])
        let read = try #require(Self.history(on: &bench).historyReads.first)
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 10, ids: [11]))).pushed == [11]
        )
        let used = bench.machine.windowUsed
        var page = Self.page(9)
        page.entries[0].payload = Data(repeating: 1, count: 60_000)
        let answer = bench.handle(.historyRead(page, of: read.id))
        #expect(answer.historyPages.first?.entries.count == 1 && answer.count == 1)
        #expect(bench.machine.windowUsed == used)
        // A full window stops pushes, not answers.
        let large = Bench.notice("B", channel: 3, after: 11, ids: [12], payload: SessionLimits().windowBytes)
        _ = bench.handle(.noticed(large))
        #expect(Self.history(number: 2, on: &bench).historyReads.count == 1)
    }

    // MARK: Summary

    @Test("a summary has the eligible Sync IDs in byte order, page by page")
    func summaries() throws {
        let types = ["b", "A", "a", "C", "Z-off", "D"]
        var bench = Bench(types.map { Bench.configuration($0) })
        bench.configurations[BizType("Z-off")]?.isOnline = false
        bench.open(types.enumerated().map { ($1, Int64($0), 10, 10) }) { $0.suspended = ["D"] }
        func ask(after: String) throws -> (channels: [Int64], more: Bool?) {
            let read = try #require(Self.summary(count: 2, after: after, on: &bench).summaryReads.first)
            #expect(
                read.channels.allSatisfy {
                    $0.receiver.deviceID == DeviceID("d") && $0.receiver.storeID == StoreID("s")
                })
            #expect(read.channels.allSatisfy { $0.stored == OplogID(10) && $0.onlyOwner == nil })
            let reply = Mss_Bus_V1_SummaryReply.with {
                $0.channels = read.channels.map { _ in Self.standing(last: 7, waiting: 3) }
            }
            let page = bench.handle(.summaryRead(reply, of: read.id)).summaryPages.first
            #expect(
                page?.bindNumber == 1 && page?.requestNumber == 1 && page?.refusal == Mss_Device_V1_RequestRefusal.none)
            #expect(page?.channels.allSatisfy { $0.last.oplogID == 7 && $0.waiting == 3 && $0.head == 10 } == true)
            #expect(page?.channels.count == read.channels.count && page?.channels.first?.syncPoint == 4)
            return (read.channels.map(\.channelID), page?.more)
        }
        #expect(try ask(after: "") == ([1, 3], true))
        #expect(try ask(after: "C") == ([2, 0], false))
        #expect(try ask(after: "a") == ([0], false))
        let none = Self.summary(after: "b", on: &bench).summaryPages
        #expect(none.map(\.refusal) == [.none] && none[0].channels.isEmpty && !none[0].more)
    }

    // MARK: Conversations

    private static func conversations(
        of bizType: String = "B", after: String = "", bind: UInt32 = 1, count: UInt32 = 2, on bench: inout Bench
    ) -> [SessionAction] {
        bench.receive {
            $0.summaryRequest.requestNumber = 1
            $0.summaryRequest.bindNumber = bind
            $0.summaryRequest.count = count
            $0.summaryRequest.conversationsOf = bizType
            $0.summaryRequest.afterConversation = after
        }
    }

    @Test("D19: conversations are read from one channel as asked, and each is a row of the page")
    func conversations() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        let history = try #require(Self.history(on: &bench) { $0.conversation = "chat" }.historyReads.first)
        #expect(history.conversation == "chat")
        let read = try #require(Self.conversations(after: "a", on: &bench).summaryReads.first)
        #expect(read.channels.map(\.channelID) == [3])
        #expect(read.conversations == SummaryRead.Conversations(after: "a", count: 2))
        let reply = Mss_Bus_V1_SummaryReply.with {
            $0.channels = ["b", "c"].map { name in
                var row = Self.standing(last: 9, waiting: 2)
                row.conversation = name
                return row
            }
            $0.more = true
            $0.next = "c"
        }
        let page = try #require(bench.handle(.summaryRead(reply, of: read.id)).summaryPages.first)
        #expect(page.refusal == .none && page.more && page.nextConversation == "c")
        #expect(page.channels.map(\.conversation) == ["b", "c"] && page.channels.allSatisfy { $0.bizType == "B" })
        #expect(page.channels.allSatisfy { $0.last.oplogID == 9 && $0.waiting == 2 && $0.head == 10 })
        let last = try #require(Self.conversations(after: "c", on: &bench).summaryReads.first)
        let end = bench.handle(.summaryRead(Mss_Bus_V1_SummaryReply(), of: last.id)).summaryPages.first
        #expect(
            end?.refusal == Mss_Device_V1_RequestRefusal.none && end?.channels.isEmpty == true && end?.more == false)
    }

    @Test("D19: conversations are refused like a history, also when the owner has changed meanwhile")
    func refusedConversations() throws {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        func refusal(_ actions: [SessionAction]) -> Mss_Device_V1_RequestRefusal? {
            actions.summaryPages.first?.refusal
        }
        let long = String(repeating: "c", count: 101)
        #expect(refusal(Self.conversations(of: "NONE", on: &bench)) == .notEligible)
        #expect(refusal(Self.conversations(after: long, on: &bench)) == .invalid)
        #expect(refusal(Self.conversations(after: "a\0", on: &bench)) == .invalid)
        #expect(refusal(Self.conversations(bind: 2, on: &bench)) == .invalid)
        #expect(refusal(Self.conversations(count: 17, on: &bench)) == .invalid)
        #expect(Self.history(on: &bench) { $0.conversation = long }.historyPages.map(\.refusal) == [.invalid])
        let read = try #require(Self.conversations(on: &bench).summaryReads.first)
        let other = Mss_Bus_V1_SummaryReply.with { $0.channels = [.with { $0.notOwner = true }] }
        #expect(bench.handle(.summaryRead(other, of: read.id)).summaryPages.map(\.refusal) == [.tryAgain])
        let again = try #require(Self.conversations(on: &bench).summaryReads.first)
        _ = bench.receive { $0.subscriptions.suspended = ["B"] }
        let reply = Mss_Bus_V1_SummaryReply.with { $0.channels = [Self.standing(last: 9)] }
        #expect(bench.handle(.summaryRead(reply, of: again.id)).summaryPages.map(\.refusal) == [.tryAgain])
        #expect(refusal(Self.conversations(on: &bench)) == .notEligible)
        _ = bench.receive { $0.subscriptions.suspended = [] }
        let empty = try #require(Self.conversations(on: &bench).summaryReads.first)
        _ = bench.receive { $0.subscriptions.suspended = ["B"] }
        let next = Mss_Bus_V1_SummaryReply.with {
            $0.more = true
            $0.next = "secret"
        }
        let page = bench.handle(.summaryRead(next, of: empty.id)).summaryPages.first
        #expect(page?.refusal == .tryAgain && page?.nextConversation.isEmpty == true, "no row names the channel")
    }

    @Test("an outdated summary must be requested again, and one of another bind is invalid")
    func summaryChangedMeanwhile() throws {
        func refusal(
            _ standing: Mss_Bus_V1_ChannelStanding = Self.standing(last: nil), _ change: (inout Bench) -> Void
        ) throws -> Mss_Device_V1_RequestRefusal? {
            var bench = Bench()
            bench.open([("B", 3, 10, 4)])
            let read = try #require(Self.summary(on: &bench).summaryReads.first)
            change(&bench)
            let reply = Mss_Bus_V1_SummaryReply.with { $0.channels = [standing] }
            return bench.handle(.summaryRead(reply, of: read.id)).summaryPages.first?.refusal
        }
        #expect(try refusal { _ in } == Mss_Device_V1_RequestRefusal.none)
        #expect(try refusal { bench in _ = bench.receive { $0.subscriptions.suspended = ["B"] } } == .tryAgain)
        #expect(try refusal { $0.holdsLease = false } == .tryAgain)
        #expect(try refusal(.with { $0.notOwner = true }) { _ in } == .tryAgain)
        #expect(try refusal { bench in _ = bench.receive { $0.bind.bindNumber = 2 } } == .invalid)
    }

    @Test("without a lease, and during a bind, a summary must be requested again")
    func summaryNotNow() {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        bench.holdsLease = false
        #expect(Self.summary(on: &bench).summaryPages.map(\.refusal) == [.tryAgain])
        bench.holdsLease = true
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        #expect(Self.summary(bind: 2, on: &bench).summaryPages.map(\.refusal) == [.tryAgain])
    }
}
