import Foundation

/// The gear of a test run: long campaigns are short in `deploy/test`, and whole in `deploy/test soak`, which sets
/// `MSS_TEST_SOAK`.
enum TestGear {
    private static let isSoak = ProcessInfo.processInfo.environment["MSS_TEST_SOAK"] != nil

    /// Returns the size of a campaign in this run: how many of something, or how many seconds.
    static func count(_ usual: Int, soak: Int) -> Int { isSoak ? soak : usual }
}
