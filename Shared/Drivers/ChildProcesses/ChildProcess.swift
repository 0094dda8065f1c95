import CLinux
package import Foundation
import Glibc
import Synchronization

/// A program that this process started.
///
/// Foundation's `Process` crashes a parent with more than about 1,300 open files, because it reads beyond the list of
/// open files at the start (Swift 6.3.1, swift-corelibs-foundation #5472).
package final class ChildProcess: Sendable {
    /// The destination of a program's output.
    package enum Output: Sendable {
        /// The output of this process.
        case inherited
        case discarded
        /// A file that is created, or emptied.
        case file(URL)
        /// The end of a file.
        case endOf(URL)
    }

    /// The process id.
    package let identifier: Int32
    /// The exit status, after the first call that collected it.
    private let seen = Mutex<Int32?>(nil)
    private let input: FileHandle?

    /// Starts a program through `env`, which searches PATH and accepts settings before the program. It inherits no
    /// other file or connection of this process.
    ///
    /// - Parameters:
    ///   - environment: the complete environment. The value is nil for the environment of this process.
    ///   - folder: the working directory. The value is nil for that of this process.
    ///   - takesInput: whether `write` reaches the program's standard input, which is otherwise empty.
    ///   - errors: the destination of standard error. The value is nil for that of standard output.
    /// - Throws: `POSIXError` when no process can be started.
    package init(
        _ command: [String], environment: [String: String]? = nil, in folder: URL? = nil, takesInput: Bool = false,
        output: Output, errors: Output? = nil
    ) throws {
        var (files, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        posix_spawn_file_actions_init(&files)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&files)
            posix_spawnattr_destroy(&attributes)
        }
        let pipe = takesInput ? Pipe() : nil
        if let pipe {
            posix_spawn_file_actions_adddup2(&files, pipe.fileHandleForReading.fileDescriptor, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        Self.open(STDOUT_FILENO, output, &files)
        if let errors {
            Self.open(STDERR_FILENO, errors, &files)
        } else {
            posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO)
        }
        posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1)
        if let folder { posix_spawn_file_actions_addchdir_np(&files, folder.path) }
        // Threads of the pool block most signals, and a child inherits that. It would ignore SIGTERM.
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = (["/usr/bin/env"] + command).map { strdup($0) } + [nil]
        var settings = (environment ?? [:]).map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + settings { free(text) } }
        var identifier: Int32 = 0
        let failure =
            environment == nil
            ? posix_spawn(&identifier, "/usr/bin/env", &files, &attributes, &arguments, environ)
            : posix_spawn(&identifier, "/usr/bin/env", &files, &attributes, &arguments, &settings)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        // So that a write fails after the end of the program.
        try pipe?.fileHandleForReading.close()
        input = pipe?.fileHandleForWriting
        self.identifier = identifier
    }

    private static func open(_ descriptor: Int32, _ output: Output, _ files: inout posix_spawn_file_actions_t) {
        let (path, placing) =
            switch output {
            case .inherited: ("", Int32(0))
            case .discarded: ("/dev/null", Int32(0))
            case .file(let file): (file.path, O_CREAT | O_TRUNC)
            case .endOf(let file): (file.path, O_CREAT | O_APPEND)
            }
        guard !path.isEmpty else { return }
        posix_spawn_file_actions_addopen(&files, descriptor, path, O_WRONLY | placing, 0o644)
    }

    deinit { _ = status }

    /// The exit status, or 128 plus the number of the terminating signal. The value is nil while the program runs, and
    /// -1 when it is unknown: other code of this process has collected it.
    package var status: Int32? {
        seen.withLock { seen in
            var ending: Int32 = 0
            guard seen == nil else { return seen }
            let collected = waitpid(identifier, &ending, WNOHANG)
            if collected == -1, errno == ECHILD { seen = -1 }
            guard collected == identifier else { return seen }
            let signal = ending & 0x7f
            seen = signal == 0 ? ending >> 8 & 0xff : 128 + signal
            return seen
        }
    }

    /// Sends a signal, unless the program is known to have ended.
    package func signal(_ number: Int32) {
        seen.withLock { if $0 == nil { kill(identifier, number) } }
    }

    /// Writes to the standard input of a program that takes input.
    ///
    /// - Throws: when the program has ended. The caller ignores SIGPIPE.
    package func write(_ data: Data) throws { try input?.write(contentsOf: data) }

    /// Blocks the thread until the program has ended.
    package func waitUntilExit() {
        var information = siginfo_t()
        // Only `status` collects the end.
        while status == nil { waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) }
    }

    /// Runs a closure on a thread of its own after the end of the program.
    package func onExit(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread {
            self.waitUntilExit()
            body()
        }
    }

    /// Waits for the end, which it looks for every 5 ms. Returns false if the end does not come in time.
    package func ends(within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while status == nil {
            // A cancelled wait must not loop.
            guard .now < deadline, (try? await Task.sleep(for: .milliseconds(5))) != nil else { return status != nil }
        }
        return true
    }

    /// Runs a program to its end and returns its standard output.
    ///
    /// - Parameters:
    ///   - environment: the complete environment. The value is nil for the environment of this process.
    ///   - folder: folder for the output files while the program runs.
    /// - Throws: `ChildProcessError` with the output, unless the program succeeds within 300 s.
    package static func output(
        of command: [String], environment: [String: String]? = nil, in folder: URL
    ) async throws -> String {
        let mark = UUID().uuidString
        let (output, errors) = (folder.appending(path: "\(mark).out"), folder.appending(path: "\(mark).err"))
        defer { for file in [output, errors] { try? FileManager.default.removeItem(at: file) } }
        let child = try ChildProcess(command, environment: environment, output: .file(output), errors: .file(errors))
        guard await child.ends(within: .seconds(300)) else {
            child.signal(SIGKILL)
            child.waitUntilExit()
            try Task.checkCancellation()
            throw ChildProcessError("\(command.joined(separator: " ")) did not end within 300 s")
        }
        let texts = try [output, errors].map { try String(contentsOf: $0, encoding: .utf8) }
        guard child.status == 0 else { throw ChildProcessError(texts.joined()) }
        return texts[0]
    }
}

/// The failure of a program, with its output.
package struct ChildProcessError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
