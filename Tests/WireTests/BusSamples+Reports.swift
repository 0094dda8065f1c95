import BusMessages
import SwiftProtobuf

// Status reports of processes.
extension BusSamples {
    static let processReports: [Mss_Bus_V1_ProcessReport] = [
        .with {
            $0.service = "mss-ingest"
            $0.processID = "p1"
            $0.version = "0.1.0"
            $0.startedAtMs = 1_700_000_000_000
            $0.ready = true
            // Each map has one entry, because the order within a map is undefined.
            $0.conditions = ["amqp": true]
            $0.figures = ["mss_ingest_in_flight": 1.5]
            $0.devices = ["demo_app": 2]
        }
    ]
}
