// Never run here: Android glue for an app that has androidx.work. It asks nobody; it delivers what was contributed.
package org.example.app

import android.content.Context
import androidx.work.Constraints
import androidx.work.ExistingPeriodicWorkPolicy
import androidx.work.NetworkType
import androidx.work.PeriodicWorkRequestBuilder
import androidx.work.WorkManager
import androidx.work.Worker
import androidx.work.WorkerParameters
import org.example.ldpbayes.Device
import java.io.File
import java.util.concurrent.TimeUnit
import kotlin.time.Duration.Companion.minutes

/** The app's device. noBackupFilesDir is in no backup: a restored device would not know what it has answered since. */
fun deviceOf(context: Context) = Device(File(context.noBackupFilesDir, "ldp-bayes"), maxTotalEpsilon = 4.0)

class DeliveryWorker(context: Context, parameters: WorkerParameters) : Worker(context, parameters) {
    // WorkManager gives a worker ten minutes. A first try waits a random time below five of them, so that its moment says little, and
    // is made before this returns.
    override fun doWork(): Result =
        if (deviceOf(applicationContext).runOnce(timeout = 8.minutes, firstDelay = 5.minutes)) Result.success() else Result.retry()
}

fun scheduleDelivery(context: Context) {
    val online = Constraints.Builder().setRequiredNetworkType(NetworkType.CONNECTED).build()
    val work = PeriodicWorkRequestBuilder<DeliveryWorker>(12, TimeUnit.HOURS).setConstraints(online).build()
    WorkManager.getInstance(context).enqueueUniquePeriodicWork("ldp-bayes", ExistingPeriodicWorkPolicy.KEEP, work)
}
