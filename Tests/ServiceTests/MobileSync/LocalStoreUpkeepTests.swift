import ChildProcesses
import DeviceProtocol
import Foundation
import GRDB
import Glibc
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import MobileSync

@Suite("K8: the local store is bounded, encrypted, repaired, and carried on") struct LocalStoreUpkeepTests {
    private static let key = [UInt8](repeating: 7, count: 32)
    private static let secret = "a payload that nobody else may read"

    private func withPath(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "upkeep-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.appending(path: "store.sqlite").path)
    }

    private func open(_ path: String, key: [UInt8]? = nil, limit: Int = 100_000_000) throws -> LocalStore {
        try LocalStore(path: path, instanceID: "app", deviceID: "d", key: key, limit: limit)
    }

    private func batch(_ ids: ClosedRange<Int64>, payload: Data) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.kind = .device
            $0.bizType = "B"
            $0.after = ids.lowerBound - 1
            $0.upto = ids.upperBound
            $0.entries = ids.map { id in
                .with {
                    $0.oplogID = id
                    $0.payload = payload
                }
            }
        }
    }

    private func waiting(_ local: LocalStore) throws -> [SyncOplog] {
        var handOut = HandOutSelector(channels: try local.startOver())
        var found: [SyncOplog] = []
        while let next = try handOut.next(of: nil, userID: nil, from: local) { found.append(next) }
        return found
    }

    private func bytes(_ path: String) -> Data {
        ["", "-wal"].reduce(Data()) { all, suffix in
            all + (FileManager.default.contents(atPath: path + suffix) ?? Data())
        }
    }

    // MARK: Encryption

    @Test("with a key no payload is readable in the files; the app reads all of it") func encrypted() throws {
        try withPath { path in
            let local = try open(path, key: Self.key)
            _ = try local.store([batch(1...3, payload: Data(Self.secret.utf8))], userID: nil, bindNumber: 0)
            #expect(try waiting(local).map(\.text) == [Self.secret, Self.secret, Self.secret])
            #expect(bytes(path).firstRange(of: Data(Self.secret.utf8)) == nil)
        }
    }

    @Test("a store that was readable is encrypted when it is opened with a key, and nothing readable is left")
    func encryptedLater() throws {
        try withPath { path in
            do {
                let local = try open(path)
                _ = try local.store([batch(1...3, payload: Data(Self.secret.utf8))], userID: nil, bindNumber: 0)
                #expect(bytes(path).firstRange(of: Data(Self.secret.utf8)) != nil)
            }
            let local = try open(path, key: Self.key)
            #expect(try waiting(local).count == 3)
            #expect(bytes(path).firstRange(of: Data(Self.secret.utf8)) == nil)
        }
    }

    @Test("data that was deleted before the store got its key is not readable either") func encryptedAfterDeletion()
        throws
    {
        try withPath { path in
            do {
                let local = try open(path)
                let payload = Data(Self.secret.utf8) + Data(repeating: 1, count: 500)
                _ = try local.store([batch(1...200, payload: payload)], userID: nil, bindNumber: 0)
                // As on systems whose SQLite does not overwrite deleted data.
                try local.file.access("leaving it readable") { try $0.execute(sql: "PRAGMA secure_delete = OFF") }
                try local.subscriptions.deleteData(of: "B", userID: nil)
            }
            #expect(bytes(path).firstRange(of: Data(Self.secret.utf8)) != nil)
            _ = try open(path, key: Self.key)
            #expect(bytes(path).firstRange(of: Data(Self.secret.utf8)) == nil)
        }
    }

    @Test("another key, or none, is refused with a reason; a changed key opens it") func wrongKey() throws {
        try withPath { path in
            let other = [UInt8](repeating: 8, count: 32)
            do {
                let local = try open(path, key: Self.key)
                _ = try local.store([batch(1...2, payload: Data(Self.secret.utf8))], userID: nil, bindNumber: 0)
            }
            for key in [other, nil] {
                let error = #expect(throws: SyncError.self) { try open(path, key: key) }
                #expect(error?.code == .storeKey)
            }
            do {
                let local = try open(path, key: Self.key)
                try local.changeCipher(to: PayloadCipher(key: other))
                #expect(try waiting(local).count == 2)
            }
            #expect(throws: SyncError.self) { try open(path, key: Self.key) }
            #expect(try waiting(open(path, key: other)).map(\.text) == [Self.secret, Self.secret])
        }
    }

    @Test("a key of another length is refused") func keyLength() throws {
        try withPath { path in
            let error = #expect(throws: SyncError.self) { try open(path, key: [1, 2, 3]) }
            #expect(error?.code == .invalidArgument)
        }
    }

    // MARK: One client

    @Test("a store in use is refused with a reason, also to the same process, until its user ends")
    func inUse() throws {
        try withPath { path in
            do {
                let local = try open(path)
                let error = #expect(throws: SyncError.self) { try open(path) }
                #expect(error?.code == .storeInUse && error?.message.contains(path) == true)
                #expect(local.file.storeID != "")
            }
            #expect(throws: Never.self) { try open(path) }
        }
    }

    @Test("a store stays reserved for its process, and any end of the process frees it") func otherProcess()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: "upkeep-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (path, output) = (folder.appending(path: "store.sqlite").path, folder.appending(path: "output"))
        let holder = try ChildProcess(
            ["flock", "--no-fork", path + ".lock", "sh", "-c", "echo held; exec sleep 60"], output: .file(output))
        try await eventually("it is held", within: .seconds(10)) { try !Data(contentsOf: output).isEmpty }
        let error = #expect(throws: SyncError.self) { try open(path) }
        #expect(error?.code == .storeInUse)
        holder.signal(SIGKILL)
        holder.waitUntilExit()
        #expect(throws: Never.self) { try open(path) }
    }

    // MARK: Older copies

    @Test("D7: the lost data of a restored store comes again as repeated, and the rest as new") func rolledBack()
        throws
    {
        try withPath { path in
            let local = try open(path)
            var again = batch(1...3, payload: Data("x".utf8))
            again.againUpto = 2
            let outcome = try local.store([again], userID: nil, bindNumber: 0)
            #expect(outcome.isRolledBack && outcome.acknowledgements.map(\.upto) == [3])
            #expect(try waiting(local).map(\.isReplay) == [true, true, false])
            #expect(!(try local.store([again], userID: nil, bindNumber: 0)).isRolledBack, "it is known by now")
        }
    }

    // MARK: Clock

    @Test("K2: a device whose clock is a year ahead keeps valid data when it starts without a connection")
    func clockAhead() throws {
        try withPath { path in
            do {
                let local = try open(path)
                let now = Int64(Date().timeIntervalSince1970 * 1_000)
                try local.clock.setServiceTime(WallTime(milliseconds: now - 365 * 86_400_000))
                var valid = batch(1...1, payload: Data("x".utf8))
                valid.entries[0].validUntilMs = Int64(Date().timeIntervalSince1970 * 1_000) - 86_400_000
                _ = try local.store([valid], userID: nil, bindNumber: 0)
            }
            #expect(try waiting(open(path)).map(\.oplogID) == [1])
        }
    }

    @Test("D11: setting the device's clock while the process runs ends no validity") func clockSet() throws {
        try withPath { path in
            let set = Mutex(WallTime(milliseconds: 1_800_000_000_000))
            let local = try LocalStore(
                path: path, instanceID: "i", deviceID: "d", clock: { set.withLock { $0 } })
            try local.clock.setServiceTime(WallTime(milliseconds: 1_700_000_000_000))
            set.withLock { $0 = WallTime(milliseconds: 1_900_000_000_000) }
            let time = try #require(local.clock.serviceTime)
            #expect(abs(time.milliseconds - 1_700_000_000_000) < 60_000)
        }
    }

    // MARK: Damage and versions

    @Test("a device id whose file cannot be read is not replaced") func unreadableDeviceID() throws {
        try withPath { path in
            let folder = URL(filePath: path).deletingLastPathComponent()
            let file = folder.appending(path: "device-id")
            try Data([0xff, 0xfe, 0xff]).write(to: file)
            #expect(throws: SyncError.self) { try DeviceIdentifier.load(from: folder) }
            #expect(try Data(contentsOf: file) == Data([0xff, 0xfe, 0xff]))
        }
    }

    @Test("a file that is not a database is moved aside; the new store is a new receiver") func damaged() throws {
        try withPath { path in
            let first = try open(path).file.storeID
            try Data(repeating: 0x5a, count: 8_192).write(to: URL(filePath: path))
            try? FileManager.default.removeItem(atPath: path + "-wal")
            do {
                let local = try open(path)
                #expect(local.file.replacedDamaged && local.file.storeID != first)
            }
            #expect(FileManager.default.contents(atPath: path + ".damaged")?.first == 0x5a)
            do {
                let again = try open(path)
                #expect(!again.file.replacedDamaged && SQLiteFile.replacements(of: path) == 1)
            }
            try Data(repeating: 0x5a, count: 8_192).write(to: URL(filePath: path))
            #expect(try open(path).file.replacedDamaged && SQLiteFile.replacements(of: path) == 2)
        }
    }

    @Test("on a full disk nothing of a push is stored or acknowledged; with space the same push is stored")
    func fullDisk() throws {
        try withPath { path in
            let local = try open(path)
            let push = batch(1...50, payload: Data(repeating: 1, count: 2_000))
            func setPages(_ pragma: String) throws {
                try local.file.access("limiting the file") { try $0.execute(sql: pragma) }
            }
            // A stand-in for the disk: SQLite gets no further page, and reports that as a full disk.
            try setPages("PRAGMA max_page_count = 1")
            let error = #expect(throws: SyncError.self) {
                try local.store([push], userID: nil, bindNumber: 0)
            }
            #expect(error?.code == .storeFull && error?.message.contains("free space") == true)
            try setPages("PRAGMA max_page_count = 1000000")
            let outcome = try local.store([push], userID: nil, bindNumber: 0)
            #expect(outcome.acknowledgements.map(\.upto) == [50])
        }
    }

    @Test("pages that are damaged in the middle are found when the store is opened") func damagedPages() throws {
        try withPath { path in
            do {
                let local = try open(path)
                let payload = Data(repeating: 1, count: 2_000)
                _ = try local.store([batch(1...200, payload: payload)], userID: nil, bindNumber: 0)
                try local.file.access("moving the log") { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
            }
            var file = try #require(FileManager.default.contents(atPath: path))
            file.replaceSubrange(40_000..<60_000, with: Data(repeating: 0xff, count: 20_000))
            try file.write(to: URL(filePath: path))
            #expect(try open(path).file.replacedDamaged)
        }
    }

    @Test("a store of a newer version of the library is refused, not changed") func newer() throws {
        try withPath { path in
            _ = try open(path)
            let database = try DatabaseQueue(path: path)
            try database.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99 from the future')") }
            let error = #expect(throws: SyncError.self) { try open(path) }
            #expect(error?.code == .store && error?.message.contains("newer version") == true)
        }
    }

    @Test("a later step finds the data of the steps before") func migration() throws {
        try withPath { path in
            _ = try open(path).store([batch(1...3, payload: Data("x".utf8))], userID: nil, bindNumber: 0)
            let database = try DatabaseQueue(path: path)
            var migrator = LocalStoreSchema.migrator
            migrator.registerMigration("2 later") { db in
                try db.execute(sql: "ALTER TABLE oplog ADD COLUMN later INTEGER NOT NULL DEFAULT 5")
            }
            try migrator.migrate(database)
            #expect(try database.read { try Int.fetchAll($0, sql: "SELECT later FROM oplog") } == [5, 5, 5])
        }
    }

    // MARK: Size limit

    @Test(
        "a full store removes the oldest confirmed data first, keeps unconfirmed data, and stores no more"
    )
    func bounded() throws {
        try withPath { path in
            let limit = 1_050_000
            let local = try open(path, limit: limit)
            let payload = Data(repeating: 3, count: 4_000)
            var next: Int64 = 1
            func push(_ count: Int64) throws -> Bool {
                let batch = batch(next...(next + count - 1), payload: payload)
                guard try !local.store([batch], userID: nil, bindNumber: 0).isFull else { return false }
                next += count
                return true
            }
            #expect(try push(100))
            let confirmed = try waiting(local)
            try local.oplogs.confirm(confirmed)
            #expect(try push(100))
            #expect(try local.space.free(for: 0))
            // The gateway has not recorded the confirmation, so the oplog is not history yet and no space is free.
            #expect(try !push(100))
            try local.unreported.recorded(try local.unreported.report(ofUser: nil, bindNumber: 0), ofUser: nil)
            #expect(try push(50))
            while try push(10) {}
            let left = try waiting(local).map(\.oplogID)
            #expect(left == Array(101..<next), "everything that is not confirmed is here")
            let channel = try #require(local.channels.all(visibleTo: nil).first)
            #expect(channel.range.from >= OplogID(50), "what was dropped is known to be lacking")
            #expect(channel.position == OplogID(next - 1), "what found no room moved no position")
        }
    }

    @Test("SEC9: confirmed data of a refused device id is removed, without a report")
    func roomOfFormerID() throws {
        try withPath { path in
            let local = try open(path, limit: 1_000_000)
            let payload = Data(repeating: 3, count: 4_000)
            _ = try local.store([batch(1...200, payload: payload)], userID: nil, bindNumber: 0)
            try local.device.replaceIdentity()
            try local.oplogs.confirm(try waiting(local))
            #expect(try local.unreported.report(ofUser: nil, bindNumber: 0).confirmed.isEmpty)
            #expect(try !local.store([batch(1...200, payload: payload)], userID: nil, bindNumber: 0).isFull)
        }
    }
}
