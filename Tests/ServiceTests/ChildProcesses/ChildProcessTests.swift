import ChildProcesses
import Foundation
import Glibc
import Testing

@Suite("Programs that a process starts") struct ChildProcessTests {
    private let folder = FileManager.default.temporaryDirectory

    @Test("a process with thousands of open files starts programs, and these inherit none of them") func manyFiles()
        async throws
    {
        let files = (0..<2_000).map { _ in open("/dev/null", O_RDONLY) }
        defer { for file in files { close(file) } }
        try #require(files.allSatisfy { $0 >= 0 }, "2,000 open files")
        for _ in 0..<20 {
            let count = try await ChildProcess.output(of: ["sh", "-c", "ls /proc/self/fd | wc -l"], in: folder)
            #expect(count == "4\n")
        }
    }

    @Test("a failed program is reported with its output, and it has the given environment") func failure()
        async throws
    {
        let error = await #expect(throws: (any Error).self) {
            try await ChildProcess.output(
                of: ["sh", "-c", "echo $WORD; echo why >&2; exit 3"], environment: ["WORD": "a b"], in: folder)
        }
        #expect(error.map { "\($0)" }?.contains("a b\nwhy\n") == true)
    }

    @Test("a program can be ended, and its status names the signal") func signals() async throws {
        let output = folder.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: output) }
        let sleeper = try ChildProcess(["sleep", "600"], output: .file(output))
        #expect(sleeper.status == nil)
        sleeper.signal(SIGTERM)
        #expect(await sleeper.ends(within: .seconds(60)))
        #expect(sleeper.status == 128 + SIGTERM)
        sleeper.signal(SIGTERM)
    }
}
