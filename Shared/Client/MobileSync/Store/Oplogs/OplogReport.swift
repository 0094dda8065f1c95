import DeviceProtocol

/// The confirmations, resends and dead letters that the gateway has not recorded: the content of one `ConfirmReport`.
struct OplogReport: Hashable, Sendable {
    /// The most items in one report. With the longest names they fit into a frame.
    static let longest = 500

    /// The oplogs that the app has confirmed.
    var confirmed: [Mss_Device_V1_ConfirmedOplogs] = []
    /// The oplogs that were resent or became dead letters.
    var resent: [Mss_Device_V1_ResentOplog] = []

    var isEmpty: Bool { confirmed.isEmpty && resent.isEmpty }
}
