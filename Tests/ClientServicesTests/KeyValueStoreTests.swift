import Foundation
import Synchronization
import Testing

@testable import ClientServices

@Suite("Key-value stores and their users") struct KeyValueStoreTests {
    private struct Draft: Codable, Equatable {
        var title: String
        var tags: [String]
        var at: Date
        var picture: Data
    }

    private let folder: TemporaryFolder
    private let events = EventLog()

    private final class EventLog: Sendable {
        private let state = Mutex<[UserStoreEvent]>([])
        var all: [UserStoreEvent] { state.withLock { $0 } }
        func add(_ event: UserStoreEvent) { state.withLock { $0.append(event) } }
    }

    init() throws { folder = try TemporaryFolder() }

    private func open(key: [UInt8]? = nil) throws -> UserStores {
        try UserStores(
            store: ServiceStore(folder: folder.url, key: key), onEvent: { [events] in events.add($0) })
    }

    @Test(
        "values of every type are read as they were written, over a restart",
        arguments: [nil, [UInt8](repeating: 3, count: 32)])
    func types(key: [UInt8]?) throws {
        let draft = Draft(
            title: "T \u{1F600} \"\0", tags: [], at: Date(timeIntervalSince1970: 1_234_567.891),
            picture: Data([0, 255, 1]))
        var values = try open(key: key).common
        try values.set(true, for: "bool")
        try values.set(Int64.max, for: "integer")
        try values.set(-0.1, for: "number")
        try values.set("", for: "text")
        try values.set(Data([1, 2, 3]), for: "data")
        try values.set(draft, for: "object")
        try values.set(["a": [1, 2]], for: "tree")
        values = try open(key: key).common
        #expect(
            try values.value("bool") == true && values.value("integer") == Int64.max && values.value("number") == -0.1)
        #expect(try values.value("text") == "" && values.value("data") == Data([1, 2, 3]))
        #expect(try values.value("object") == draft && values.value("tree") == ["a": [1, 2]])
        #expect(try values.value("nothing", as: Int.self) == nil)
    }

    @Test("a value of another type is an error, not a default") func wrongType() throws {
        let values = try open().common
        try values.set("17", for: "k")
        do {
            _ = try values.value("k", as: Int.self)
            Issue.record("it was read")
        } catch { #expect(error.code == .wrongType) }
        #expect(try values.value("k") == "17")
    }

    @Test("keys are listed and removed, alone and by prefix") func keys() throws {
        let values = try open().common
        for key in ["b", "a/2", "a/1", "a%", "ab"] { try values.set(1, for: key) }
        #expect(try values.keys() == ["a%", "a/1", "a/2", "ab", "b"] && values.keys(prefix: "a/") == ["a/1", "a/2"])
        try values.remove(["ab", "nothing"])
        try values.remove(prefix: "a/")
        #expect(try values.keys() == ["a%", "b"])
        try values.remove(prefix: "")
        #expect(try values.keys().isEmpty)
    }

    @Test("invalid keys and values are refused, and the value before stays") func bad() throws {
        let values = try open().common
        try values.set(1, for: "k")
        for key in ["", "a\0b", String(repeating: "k", count: 257)] {
            #expect(throws: ClientServiceError.self) { try values.set(1, for: key) }
        }
        #expect(throws: ClientServiceError.self) { try values.set(Double.nan, for: "k") }
        #expect(throws: ClientServiceError.self) { try values.set(String(repeating: "v", count: 4_000_000), for: "k") }
        #expect(try values.value("k") == 1)
    }

    @Test("the user's store changes with the user; common values do not") func switching() throws {
        let stores = try open()
        #expect(stores.user == nil && stores.lastUserID == nil && !stores.isSignedIn)
        try stores.common.set("all", for: "k")
        try stores.signIn(userID: "u1")
        try stores.user?.set("one", for: "k")
        let held = try #require(stores.user)
        try stores.signIn(userID: "u2")
        #expect(try stores.user?.value("k", as: String.self) == nil)
        try stores.user?.set("two", for: "k")
        #expect(try held.value("k") == "one", "a store stays its owner's")
        #expect(try stores.common.value("k") == "all")
        try stores.signIn(userID: "u1")
        #expect(try stores.user?.value("k") == "one")
    }

    @Test("after a sign-out, and a restart, the store is still the last user's") func signOut() throws {
        var stores = try open()
        try stores.signIn(userID: "u1")
        try stores.user?.set(1, for: "k")
        stores.signOut()
        #expect(try stores.user?.value("k") == 1 && !stores.isSignedIn && stores.lastUserID == "u1")
        stores = try open()
        #expect(try stores.user?.value("k") == 1 && !stores.isSignedIn && stores.lastUserID == "u1")
        try stores.signIn(userID: "u1")
        #expect(stores.isSignedIn)
    }

    @Test("events report users in order: will resign while the store is the last one's, updated, renewed")
    func order() throws {
        let seen = Mutex<[String?]>([])
        let box = Mutex<UserStores?>(nil)
        let stores = try UserStores(
            store: ServiceStore(folder: folder.url),
            onEvent: { [events] event in
                events.add(event)
                let stores = box.withLock { $0 }
                if case .willResign = event { try? stores?.user?.set("bye", for: "last words") }
                seen.withLock { $0.append(stores?.lastUserID) }
            })
        box.withLock { $0 = stores }
        try stores.signIn(userID: "u1")
        stores.signOut()
        try stores.signIn(userID: "u1")
        try stores.signIn(userID: "u2")
        #expect(
            events.all == [
                .updated(userID: "u1"), .renewed(userID: "u1"), .willResign(userID: "u1"), .updated(userID: "u2"),
            ])
        #expect(seen.withLock { $0 } == ["u1", "u1", "u1", "u2"])
        #expect(try stores.user?.keys() == [])
        try stores.signIn(userID: "u1")
        #expect(try stores.user?.value("last words") == "bye")
        box.withLock { $0 = nil }
    }

    @Test("user ids that only look the same are different users") func lookalikes() throws {
        let stores = try open()
        try stores.signIn(userID: "caf\u{e9}")
        try stores.user?.set(1, for: "k")
        try stores.signIn(userID: "cafe\u{301}")
        #expect(try stores.user?.value("k", as: Int.self) == nil)
    }

    @Test("an invalid user id is refused, and nothing changes") func badUser() throws {
        let stores = try open()
        try stores.signIn(userID: "u1")
        for userID in ["", "a\0b", String(repeating: "u", count: 101)] {
            #expect(throws: ClientServiceError.self) { try stores.signIn(userID: userID) }
        }
        #expect(stores.lastUserID == "u1" && events.all == [.updated(userID: "u1")])
    }

    @Test("sign-ins from concurrent tasks are handled one after the other, each with all its events")
    func concurrent() async throws {
        let stores = try open()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { try? stores.signIn(userID: "u\(number)") } }
        }
        var last: String?
        var resigning: String?
        for event in events.all {
            switch event {
            case .willResign(let userID):
                #expect(userID == last && resigning == nil)
                resigning = userID
            case .updated(let userID):
                #expect(resigning == last)
                (last, resigning) = (userID, nil)
            case .renewed: Issue.record("everybody is another")
            }
        }
        #expect(last == stores.lastUserID && events.all.count == 39)
        #expect(try open().lastUserID == last)
    }
}
