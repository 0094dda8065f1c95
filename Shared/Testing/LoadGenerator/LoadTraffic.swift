/// Bytes and frames of a load run, above TCP and TLS.
struct LoadTraffic: Hashable, Sendable, Codable {
    /// Number of API calls.
    var calls = 0
    var httpBytesOut = 0
    var httpBytesIn = 0
    /// Number of frames from gateways.
    var framesIn = 0
    var deviceBytesIn = 0
    var deviceBytesOut = 0

    /// The difference to an earlier count.
    func since(_ earlier: LoadTraffic) -> LoadTraffic {
        LoadTraffic(
            calls: calls - earlier.calls, httpBytesOut: httpBytesOut - earlier.httpBytesOut,
            httpBytesIn: httpBytesIn - earlier.httpBytesIn, framesIn: framesIn - earlier.framesIn,
            deviceBytesIn: deviceBytesIn - earlier.deviceBytesIn,
            deviceBytesOut: deviceBytesOut - earlier.deviceBytesOut)
    }
}
