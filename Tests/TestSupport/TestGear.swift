import Foundation

/// The gear of a test run: long campaigns are short in `deploy/test`, and whole in `deploy/test soak`.
package enum TestGear {
    /// Whether the run has hours of time: `deploy/test soak` sets `MSS_TEST_SOAK`.
    package static let isSoak = ProcessInfo.processInfo.environment["MSS_TEST_SOAK"] != nil

    /// Returns how often a campaign does something in this run.
    package static func count(_ usual: Int, soak: Int) -> Int { isSoak ? soak : usual }
}
