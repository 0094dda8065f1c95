import ArgumentParser
import CLinux
package import Foundation
import Glibc
import Synchronization

/// A program that the tool started.
///
/// Foundation's `Process` crashes a parent with more than about 1,300 open files, because it reads beyond the list of
/// open files at the start (Swift 6.3.1, swift-corelibs-foundation #5472).
package final class ChildProcess: Sendable {
    private let identifier: pid_t
    /// The exit status, after the first call that collected it.
    private let seen = Mutex<Int32?>(nil)

    /// Starts a program through `env`, which searches PATH and accepts settings before the program. Its output goes to
    /// files. It inherits no other file or connection of the tool.
    package init(_ command: [String], output: URL, errors: URL) throws {
        var (files, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        posix_spawn_file_actions_init(&files)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&files)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        let mode: mode_t = 0o644
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.path, O_WRONLY | O_CREAT | O_TRUNC, mode)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.path, O_WRONLY | O_CREAT | O_TRUNC, mode)
        posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1)
        // Threads of the pool block most signals, and a child inherits that. It would ignore SIGTERM.
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = (["/usr/bin/env"] + command).map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var identifier: pid_t = 0
        let failure = posix_spawn(&identifier, "/usr/bin/env", &files, &attributes, &arguments, environ)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        self.identifier = identifier
    }

    deinit { _ = status }

    /// The exit status, or 128 plus the number of the terminating signal. The value is nil while the program runs.
    package var status: Int32? {
        seen.withLock { seen in
            var ending: Int32 = 0
            guard seen == nil, waitpid(identifier, &ending, WNOHANG) == identifier else { return seen }
            let signal = ending & 0x7f
            seen = signal == 0 ? ending >> 8 & 0xff : 128 + signal
            return seen
        }
    }

    /// Sends a signal, unless the program is known to have ended.
    package func signal(_ number: Int32) {
        seen.withLock { if $0 == nil { kill(identifier, number) } }
    }

    /// Waits for the end. Returns false if it does not come in time.
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
    /// - environment: the complete environment. The value is nil for the environment of the tool.
    /// - folder: folder for the output files while the program runs.
    /// - Throws: `ValidationError` with the output, unless the program succeeds within 300 s.
    package static func output(
        of command: [String], environment: [String: String]? = nil, in folder: URL
    ) async throws -> String {
        let mark = UUID().uuidString
        let (output, errors) = (folder.appending(path: "\(mark).out"), folder.appending(path: "\(mark).err"))
        defer { for file in [output, errors] { try? FileManager.default.removeItem(at: file) } }
        let settings = environment.map { ["-i"] + $0.map { "\($0.key)=\($0.value)" } } ?? []
        let child = try ChildProcess(settings + command, output: output, errors: errors)
        guard await child.ends(within: .seconds(300)) else {
            child.signal(SIGKILL)
            throw ValidationError("\(command.joined(separator: " ")) did not end within 300 s")
        }
        let texts = try [output, errors].map { try String(contentsOf: $0, encoding: .utf8) }
        guard child.status == 0 else { throw ValidationError(texts.joined()) }
        return texts[0]
    }
}
