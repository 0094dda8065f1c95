import GRDB

/// What is known of the networks that the device was on.
extension LocalStore {
    /// What is known of a network's heartbeat.
    func heartbeat(of network: String) throws(SyncError) -> Heartbeat.Learned {
        try access("reading a heartbeat") { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT good_seconds, bad_seconds, doubtful_seconds FROM heartbeat WHERE network = ?",
                arguments: [network])
            func duration(_ seconds: Int64?) -> Duration? {
                seconds.flatMap { (1...3_600).contains($0) ? .seconds($0) : nil }
            }
            return Heartbeat.Learned(good: duration(row?[0]), bad: duration(row?[1]), doubtful: duration(row?[2]))
        }
    }

    /// Notes what is known of a network's heartbeat.
    func setHeartbeat(_ learned: Heartbeat.Learned, of network: String) throws(SyncError) {
        try change("noting a heartbeat") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO heartbeat VALUES (?, ?, ?, ?)",
                arguments: [
                    network, learned.good?.components.seconds ?? 0, learned.bad?.components.seconds ?? 0,
                    learned.doubtful?.components.seconds ?? 0,
                ])
        }
    }
}
