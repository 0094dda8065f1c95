import DeviceProtocol

/// What the app did with oplogs, as far as the gateway has not recorded it; what one `ConfirmReport` carries.
struct OplogReport: Hashable, Sendable {
    /// Oplogs and repeats in one report; with the longest names they take less than a frame.
    static let longest = 500

    /// What it has processed.
    var confirmed: [Mss_Device_V1_ConfirmedOplogs] = []
    /// What it was given again, or not any more.
    var resent: [Mss_Device_V1_ResentOplog] = []

    var isEmpty: Bool { confirmed.isEmpty && resent.isEmpty }
}
