import Foundation

/// Draws the screen again after each change that can be seen. To a pipe it writes the lines and an empty line.
actor ScreenWriter {
    private static let clear = "\u{1b}[H\u{1b}[2J"

    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private(set) var screen = Screen()
    private var drawn: [String] = []

    /// Shows the answer to a command.
    func reply(_ lines: [String]) { change { $0.reply = lines } }

    /// Changes the screen and draws it.
    func change(_ body: @Sendable (inout Screen) -> Void) {
        body(&screen)
        let lines = screen.lines
        guard lines != drawn else { return }
        drawn = lines
        let text = drawn.map { "\($0)\n" }.joined()
        let output = isTerminal ? "\(Self.clear)\(text)> " : "\(text)\n"
        FileHandle.standardOutput.write(Data(output.utf8))
    }
}
