import Foundation
import MobileSync

/// The app with a user interface of lines: it reads commands, and draws the screen again whenever something changes.
final class Terminal {
    private let device: FieldDevice
    private let writer = ScreenWriter()
    private var lines: AsyncStream<String>.Iterator

    init(device: FieldDevice, lines: AsyncStream<String>) {
        self.device = device
        self.lines = lines.makeAsyncIterator()
    }

    /// Signs the user of the last run in again, also without a network. Runs until `quit` or the end of the input.
    func run() async throws {
        var isOpen = true
        while isOpen, let (user, session) = try await signedIn() {
            let app = try await FieldApp(user: user, session: session, on: device)
            await writer.change { $0 = Screen(user: user) }
            isOpen = await run(TerminalSession(app: app, user: user, writer: writer))
            await app.sync.stop()
        }
    }

    /// Waits for a user; nil at the end of the input.
    private func signedIn() async throws -> (user: String, session: String)? {
        if let known = try device.signedIn() { return known }
        await writer.change { $0 = Screen() }
        while let line = await lines.next(isolation: #isolation) {
            do {
                switch try Command(line) {
                case .signIn(let user): return (user, try await device.signIn(user))
                case .help: await writer.reply(Command.usages)
                case .quit: return nil
                default: throw FieldError("sign in first: sign-in USER")
                }
            } catch {
                await writer.reply(["\(error)"])
            }
        }
        return nil
    }

    /// Runs the commands of a user.
    ///
    /// - Returns: false at the end of the input.
    private func run(_ session: TerminalSession) async -> Bool {
        await withDiscardingTaskGroup { group in
            session.watch(in: &group)
            defer { group.cancelAll() }
            while let line = await lines.next(isolation: #isolation) {
                await writer.reply([])
                do {
                    let command = try Command(line)
                    if command == .quit { return false }
                    try await session.perform(command, in: &group)
                    if command == .signOut { return true }
                } catch {
                    await writer.reply(["\(error)"])
                }
            }
            return false
        }
    }
}
