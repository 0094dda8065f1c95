import Foundation
import Testing

@testable import ServiceKit

@Suite("Settings")
struct SettingsTests {
    private static let port = SettingKey<Int>.port("MSS_TEST_SUBJECT_PORT", default: 7_080)
    private static let wanted = SettingKey<String>.text("MSS_SUBJECT_NAME", "a name", example: "a", default: nil)
    private static let secret = SettingKey<String>.secret("MSS_SUBJECT_SECRET", "a secret", default: "")

    private func problems(_ keys: [AnySettingKey], _ environment: [String: String]) -> [String] {
        do throws(Settings.Problems) {
            _ = try Settings(keys, environment: environment)
            return []
        } catch {
            return error.lines
        }
    }

    /// Runs the body with a file of this text.
    private func withFile(_ text: String, _ body: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("mss-\(UUID().uuidString)").path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    @Test("a default holds until the variable says otherwise; an empty variable counts as not set")
    func defaults() throws {
        let keys = [Self.port.erased]
        #expect(try Settings(keys, environment: [:])[Self.port] == 7_080)
        #expect(try Settings(keys, environment: ["MSS_TEST_SUBJECT_PORT": ""])[Self.port] == 7_080)
        #expect(try Settings(keys, environment: ["MSS_TEST_SUBJECT_PORT": "1"])[Self.port] == 1)
    }

    @Test("a value outside its range is named with the form and an example", arguments: ["0", "65536", "x", "1.5"])
    func outside(text: String) {
        let lines = problems([Self.port.erased], ["MSS_TEST_SUBJECT_PORT": text])
        #expect(lines.count == 1)
        #expect(lines.first?.contains("MSS_TEST_SUBJECT_PORT") == true && lines.first?.contains("65535") == true)
    }

    @Test("all problems are named together: missing, malformed, unknown")
    func all() {
        let lines = problems(
            [Self.port.erased, Self.wanted.erased],
            ["MSS_TEST_SUBJECT_PORT": "x", "MSS_SUBJECT_NMAE": "a", "HOME": "/"])
        #expect(lines.count == 3)
        #expect(
            lines.contains { $0.hasPrefix("MSS_SUBJECT_NAME") } && lines.contains { $0.hasPrefix("MSS_SUBJECT_NMAE") })
    }

    @Test("the environment wins over the file, the file over the default")
    func file() throws {
        try withFile(#"{"MSS_TEST_SUBJECT_PORT": "81", "MSS_SUBJECT_NAME": "file"}"#) { path in
            let keys = [Self.port.erased, Self.wanted.erased]
            let settings = try Settings(
                keys, environment: ["MSS_CONFIG_FILE": path, "MSS_SUBJECT_NAME": "environment"])
            #expect(settings[Self.port] == 81 && settings[Self.wanted] == "environment")
        }
        #expect(problems([], ["MSS_CONFIG_FILE": "/nonexistent"]).count == 1)
    }

    @Test("a secret may come from a file and is never shown, not even when it is wrong")
    func secrets() throws {
        try withFile("hush\n") { path in
            let settings = try Settings([Self.secret.erased], environment: ["MSS_SUBJECT_SECRET_FILE": path])
            #expect(settings[Self.secret] == "hush" && !settings.listing.contains("hush"))
        }
        #expect(problems([Self.secret.erased], ["MSS_SUBJECT_SECRET_FILE": "/nonexistent"]).count == 1)
    }

    @Test("durations are read in the unit that the name ends in")
    func durations() throws {
        let short = SettingKey<Duration>.milliseconds("MSS_SUBJECT_MS", in: 1...5_000, default: 3_000)
        let long = SettingKey<Duration>.seconds("MSS_SUBJECT_SECONDS", in: 1...60, default: 5)
        let settings = try Settings([short.erased, long.erased], environment: ["MSS_SUBJECT_MS": "20"])
        #expect(settings[short] == .milliseconds(20) && settings[long] == .seconds(5))
    }
}
