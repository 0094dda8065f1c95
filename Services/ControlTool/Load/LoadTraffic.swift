/// What a load run has read and written so far, above TCP and TLS.
struct LoadTraffic: Hashable, Sendable, Codable {
    /// Calls of the API.
    var calls = 0
    var httpBytesOut = 0
    var httpBytesIn = 0
    /// Frames from gateways.
    var framesIn = 0
    var deviceBytesIn = 0
    var deviceBytesOut = 0

    /// What came after an earlier count.
    func since(_ earlier: LoadTraffic) -> LoadTraffic {
        LoadTraffic(
            calls: calls - earlier.calls, httpBytesOut: httpBytesOut - earlier.httpBytesOut,
            httpBytesIn: httpBytesIn - earlier.httpBytesIn, framesIn: framesIn - earlier.framesIn,
            deviceBytesIn: deviceBytesIn - earlier.deviceBytesIn,
            deviceBytesOut: deviceBytesOut - earlier.deviceBytesOut)
    }
}
