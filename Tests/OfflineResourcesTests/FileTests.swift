import Foundation
import Testing

@testable import OfflineResources

@Suite("Files, streamed with progress and resumed", .timeLimit(.minutes(2))) struct FileTests {
    /// Text of this many bytes in which each part is different.
    private static func content(_ size: Int) -> String {
        String((0..<size / 8 + 1).map { String(format: "%07x.", $0) }.joined().prefix(size))
    }

    /// Collects the progress of one transfer.
    private struct Steps {
        private let pipe = AsyncStream.makeStream(of: TransferProgress.self)

        var record: @Sendable (TransferProgress) -> Void { { [pipe] in pipe.continuation.yield($0) } }

        /// The steps, after the transfer has ended.
        func all() async -> [TransferProgress] {
            pipe.continuation.finish()
            return await pipe.stream.reduce(into: []) { $0.append($1) }
        }
    }

    private func code(_ error: any Error) -> ResourceError.Code? { (error as? ResourceError)?.code }

    @Test("a file is downloaded in pieces with progress, and is at its destination only when it is complete")
    func download() async throws {
        try await Bench.with { bench in
            let content = Self.content(1_000_000)
            bench.backend.set("/video", content)
            let (client, target) = (try bench.start(), bench.folder.appending(path: "video"))
            let steps = Steps()
            let file = try #require(try await client.files.download("/video", to: target, progress: steps.record))
            #expect(file.size == 1_000_000 && file.uri == "/video" && file.etag == bench.backend.tag("/video"))
            #expect(try String(contentsOf: target, encoding: .utf8) == content)
            let all = await steps.all()
            #expect(all.first == TransferProgress(transferred: 0, total: 1_000_000) && all.last?.fraction == 1)
            #expect(all.count > 2 && all == all.sorted { $0.transferred < $1.transferred })
            #expect(!FileManager.default.fileExists(atPath: target.path + ".part"))
            // A newer version replaces the file.
            bench.backend.set("/video", "short")
            #expect(try await client.files.download("/video", to: target)?.size == 5)
            #expect(try String(contentsOf: target, encoding: .utf8) == "short")
            #expect(!FileManager.default.fileExists(atPath: target.path + ".part"))
            bench.backend.remove("/video")
            #expect(try await client.files.download("/video", to: target) == nil)
            #expect(try String(contentsOf: target, encoding: .utf8) == "short")
        }
    }

    @Test("an interrupted download continues at its offset, also after a restart of the app")
    func resumedDownload() async throws {
        try await Bench.with { bench in
            let content = Self.content(500_000)
            bench.backend.set("/video", content)
            let target = bench.folder.appending(path: "video")
            let first = try bench.start()
            bench.transport.cutAfter = 200_000
            await #expect { try await first.files.download("/video", to: target) } throws: { code($0) == .offline }
            #expect(first.status == .offline && !FileManager.default.fileExists(atPath: target.path))
            bench.transport.cutAfter = nil
            bench.pass(5)
            let (client, steps) = (try bench.start(), Steps())
            _ = bench.backend.drainRequests()
            #expect(try await client.files.download("/video", to: target, progress: steps.record)?.size == 500_000)
            #expect(bench.backend.drainRequests().map(\.range) == ["bytes=200000-"])
            #expect(await steps.all().first == TransferProgress(transferred: 200_000, total: 500_000))
            #expect(try String(contentsOf: target, encoding: .utf8) == content)
        }
    }

    @Test(
        "a download begins again when the version changed, the part is gone, or the backend has no parts",
        arguments: ["version", "part", "ranges", "user"])
    func restartedDownload(_ cause: String) async throws {
        try await Bench.with { bench in
            bench.backend.set("/video", Self.content(300_000))
            let (client, target) = (try bench.start(), bench.folder.appending(path: "video"))
            bench.transport.cutAfter = 100_000
            await #expect { try await client.files.download("/video", to: target) } throws: { code($0) == .offline }
            bench.transport.cutAfter = nil
            bench.pass(5)
            let content = cause == "version" ? String(Self.content(299_999).reversed()) : Self.content(300_000)
            switch cause {
            case "version": bench.backend.set("/video", content)
            case "part": try FileManager.default.removeItem(atPath: target.path + ".part")
            case "ranges": bench.backend.change { $0.honoursRanges = false }
            default: try client.bind(userID: "u2")
            }
            #expect(try await client.files.download("/video", to: target)?.size == Int64(content.utf8.count))
            #expect(try String(contentsOf: target, encoding: .utf8) == content)
        }
    }

    @Test("the parts of two resources are never joined, also when both are downloaded into one file")
    func oneDestination() async throws {
        try await Bench.with { bench in
            let content = Self.content(300_000)
            bench.backend.set("/a", content)
            bench.backend.set("/b", String(content.reversed()))
            let (client, target) = (try bench.start(), bench.folder.appending(path: "video"))
            for (uri, size): (String, Int64) in [("/a", 100_000), ("/b", 150_000)] {
                bench.transport.cutAfter = size
                await #expect { try await client.files.download(uri, to: target) } throws: { code($0) == .offline }
                bench.pass(5)
            }
            bench.transport.cutAfter = nil
            #expect(try await client.files.download("/a", to: target)?.size == 300_000)
            #expect(try String(contentsOf: target, encoding: .utf8) == content)
        }
    }

    @Test("an interrupted upload is not continued for another condition") func otherCondition() async throws {
        try await Bench.with { bench in
            bench.backend.change { $0.resumesUploads = true }
            let source = bench.folder.appending(path: "video")
            try Self.content(100_000).write(to: source, atomically: true, encoding: .utf8)
            let client = try bench.start { $0.resumableUploads = true }
            bench.transport.cutAfter = 10_000
            let wins = SyncPolicy(conflictResolutionPolicy: .clientWins)
            await #expect {
                try await client.files.upload(source, to: "/video", policy: wins)
            } throws: { code($0) == .offline }
            bench.transport.cutAfter = nil
            bench.pass(5)
            bench.backend.set("/video", "theirs")
            await #expect {
                try await client.files.upload(source, to: "/video", basedOn: "\"v0\"")
            } throws: { code($0) == .conflict }
            #expect(bench.backend.body("/video") == "theirs")
        }
    }

    @Test("a file is uploaded in pieces of at most 64 KiB with progress, on the version that it replaces")
    func upload() async throws {
        try await Bench.with { bench in
            let (content, source) = (Self.content(300_000), bench.folder.appending(path: "photo"))
            try content.write(to: source, atomically: true, encoding: .utf8)
            let (client, steps) = (try bench.start(), Steps())
            let first = try await client.files.upload(
                source, to: "/photo", contentType: "image/jpeg", progress: steps.record)
            #expect(first.etag == bench.backend.tag("/photo") && bench.backend.body("/photo") == content)
            let sent = await steps.all().map(\.transferred)
            #expect(sent.first == 0 && sent.last == 300_000)
            #expect(zip(sent, sent.dropFirst()).allSatisfy { $1 - $0 <= 65_536 })
            // SERVER_WINS is the default of files: another version is not overwritten.
            bench.backend.set("/photo", "theirs")
            await #expect {
                try await client.files.upload(source, to: "/photo", basedOn: first.etag)
            } throws: { error in
                (error as? ResourceError)?.status == 412 && code(error) == .conflict
            }
            #expect(bench.backend.body("/photo") == "theirs")
            _ = try await client.files.upload(
                source, to: "/photo", basedOn: first.etag, policy: SyncPolicy(conflictResolutionPolicy: .clientWins))
            #expect(bench.backend.body("/photo") == content)
        }
    }

    @Test("an upload that waits for the network is sent when there is one; cancelled, it ends")
    func waitingUpload() async throws {
        try await Bench.with { bench in
            let (client, source) = (try bench.start(), bench.folder.appending(path: "photo"))
            try Self.content(100_000).write(to: source, atomically: true, encoding: .utf8)
            client.networkChanged(isAvailable: false)
            let steps = Steps()
            async let sent = client.files.upload(source, to: "/photo", waitsForNetwork: true, progress: steps.record)
            client.networkChanged(isAvailable: true)
            #expect(try await sent.etag == bench.backend.tag("/photo"))
            #expect(await steps.all().last?.fraction == 1)
            client.networkChanged(isAvailable: false)
            await #expect {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await client.files.upload(source, to: "/photo", waitsForNetwork: true) }
                    group.cancelAll()
                    try await group.waitForAll()
                }
            } throws: {
                code($0) == .cancelled
            }
        }
    }

    @Test("an upload that waits for the network is not sent for another user") func waitingUser() async throws {
        try await Bench.with { bench in
            let (client, source) = (try bench.start(), bench.folder.appending(path: "photo"))
            try Self.content(300_000).write(to: source, atomically: true, encoding: .utf8)
            bench.transport.cutAfter = 100_000
            await #expect {
                _ = try await client.files.upload(source, to: "/photo", waitsForNetwork: true) { _ in
                    try? client.bind(userID: "u2")
                }
            } throws: {
                code($0) == .userChanged
            }
            #expect(bench.backend.drainRequests().map(\.method) == ["PUT"])
        }
    }

    @Test("a cached copy is fetched again after an upload") func uploadAndCache() async throws {
        try await Bench.with { bench in
            bench.backend.set("/photo", "old")
            let (client, source) = (try bench.start(), bench.folder.appending(path: "photo"))
            try "new".write(to: source, atomically: true, encoding: .utf8)
            _ = try await client.fetchFile("/photo")
            _ = bench.backend.drainRequests()
            _ = try await client.files.upload(source, to: "/photo")
            #expect(bench.backend.drainRequests().map(\.ifMatch) == ["\"v1\""])
            try await client.refresher.refresh()
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            #expect(try await client.fetchFile("/photo", policy: cached)?.body == bytes("new"))
        }
    }

    @Test("an interrupted upload continues at the backend's offset, also after a restart and a lost answer")
    func resumedUpload() async throws {
        try await Bench.with { bench in
            bench.backend.change { $0.resumesUploads = true }
            let (content, source) = (Self.content(400_000), bench.folder.appending(path: "video"))
            try content.write(to: source, atomically: true, encoding: .utf8)
            let first = try bench.start { $0.resumableUploads = true }
            bench.transport.cutAfter = 150_000
            await #expect { try await first.files.upload(source, to: "/video") } throws: { code($0) == .offline }
            #expect(bench.backend.body("/video") == nil)
            bench.transport.cutAfter = nil
            bench.pass(5)
            bench.transport.network = .losesAnswers
            _ = bench.backend.drainRequests()
            let (client, steps) = (try bench.start { $0.resumableUploads = true }, Steps())
            await #expect { try await client.files.upload(source, to: "/video") } throws: { code($0) == .offline }
            bench.transport.network = .works
            bench.pass(5)
            #expect(bench.backend.drainRequests().map(\.method) == ["HEAD"])
            _ = try await client.files.upload(source, to: "/video", progress: steps.record)
            #expect(await steps.all().first == TransferProgress(transferred: 150_000, total: 400_000))
            #expect(bench.backend.drainRequests().map(\.uploadOffset) == [nil, "150000"])
            #expect(bench.backend.body("/video") == content)
            // The next upload is another one.
            _ = try await client.files.upload(source, to: "/video")
            #expect(bench.backend.drainRequests().map(\.method) == ["PUT", "PATCH"])
        }
    }

    @Test("an upload whose last answer was lost is complete, one of a changed or forgotten file begins again")
    func uploadStates() async throws {
        try await Bench.with { bench in
            bench.backend.change { $0.resumesUploads = true }
            let source = bench.folder.appending(path: "video")
            try Self.content(100_000).write(to: source, atomically: true, encoding: .utf8)
            let client = try bench.start { $0.resumableUploads = true }
            // The answer to the last part is lost.
            await #expect {
                try await client.files.upload(source, to: "/video") { _ in bench.transport.network = .losesAnswers }
            } throws: { code($0) == .offline }
            bench.transport.network = .works
            bench.pass(5)
            _ = bench.backend.drainRequests()
            _ = try await client.files.upload(source, to: "/video")
            #expect(bench.backend.drainRequests().map(\.method) == ["HEAD"])
            #expect(bench.backend.body("/video") == Self.content(100_000))
            for cause in ["changed", "forgotten"] {
                bench.transport.cutAfter = 10_000
                await #expect { try await client.files.upload(source, to: "/video") } throws: { code($0) == .offline }
                bench.transport.cutAfter = nil
                bench.pass(5)
                let content = cause == "changed" ? "another" : Self.content(100_000)
                if cause == "changed" { try content.write(to: source, atomically: true, encoding: .utf8) }
                if cause == "forgotten" { bench.backend.change { $0.uploads = [:] } }
                _ = bench.backend.drainRequests()
                _ = try await client.files.upload(source, to: "/video")
                #expect(bench.backend.drainRequests().map(\.method).suffix(2) == ["PUT", "PATCH"])
                #expect(bench.backend.body("/video") == (cause == "changed" ? "another" : content))
                try Self.content(100_000).write(to: source, atomically: true, encoding: .utf8)
            }
        }
    }

    @Test("misuse of a transfer is an error that says what to do") func misuse() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let (client, target) = (try bench.start { $0.resumableUploads = true }, bench.folder.appending(path: "a"))
            let nowhere = URL(filePath: "/no/such/folder/file")
            await #expect { try await client.files.download("/a", to: nowhere) } throws: { code($0) == .file }
            await #expect { try await client.files.upload(nowhere, to: "/a") } throws: { code($0) == .file }
            await #expect { try await client.files.download("/a", to: bench.folder) } throws: {
                code($0) == .invalidArgument
            }
            await #expect {
                try await client.files.upload(target, to: "/a", basedOn: "v 1")
            } throws: { code($0) == .invalidArgument }
            await #expect {
                try await client.files.download("/a", to: target, headers: ["Range": "bytes=0-"])
            } throws: { code($0) == .invalidArgument }
            await #expect {
                try await client.files.upload(target, to: "/a", contentType: "a\r\nb")
            } throws: { code($0) == .invalidArgument }
            bench.backend.refuse("GET", 403)
            await #expect { try await client.files.download("/a", to: target) } throws: { code($0) == .refused }
            // A backend without resumable uploads.
            try "2".write(to: target, atomically: true, encoding: .utf8)
            await #expect {
                try await client.files.upload(target, to: "/a")
            } throws: { ($0 as? ResourceError)?.message.contains("set resumableUploads to false") == true }
            client.networkChanged(isAvailable: false)
            await #expect { try await client.files.download("/a", to: target) } throws: { code($0) == .offline }
            let created = try await client.create(in: "/b", body: bytes("{}"))
            await #expect {
                try await client.files.download(created?.uri ?? "", to: target)
            } throws: { code($0) == .invalidArgument }
        }
    }

    @Test("a cancelled download stops, and one transfer of a file runs at a time") func cancellation() async throws {
        try await Bench.with { bench in
            bench.backend.set("/video", Self.content(2_000_000))
            let (client, target) = (try bench.start(), bench.folder.appending(path: "video"))
            let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
            let (checks, check) = AsyncStream.makeStream(of: Void.self)
            bench.transport.beforePiece {
                arrive.yield()
                for await _ in checks { break }
            }
            await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await client.files.download("/video", to: target) }
                for await _ in arrived { break }
                // The first piece is being received.
                await #expect {
                    try await client.files.download("/video", to: target)
                } throws: { code($0) == .alreadyRunning }
                group.cancelAll()
                check.finish()
                do {
                    try await group.waitForAll()
                    Issue.record("the transfer was not cancelled")
                } catch { #expect(code(error) == .cancelled) }
            }
            bench.transport.beforePiece(nil)
            #expect(try await client.files.download("/video", to: target)?.size == 2_000_000)
            #expect(try String(contentsOf: target, encoding: .utf8) == Self.content(2_000_000))
        }
    }
}
